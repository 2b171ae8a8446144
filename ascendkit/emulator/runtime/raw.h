// Loads and stores of scalar and SIMT code, seen through hooks the compiler calls.
#pragma once

#include "runtime/state.h"

namespace ak {

// Identity of the SIMT thread that runs, for its accesses; kNoThread outside SIMT functions.
constexpr uint32_t kNoThread = ~0u;
extern __thread uint32_t simt_thread;
// Barriers it has passed, in the high half, and collectives of its warp.
extern __thread uint32_t simt_phase;

// From here on accesses are those of `core`. They are gathered into runs and become records when
// anything else is recorded.
void raw_begin(Core& core);
void raw_flush();

}  // namespace ak
