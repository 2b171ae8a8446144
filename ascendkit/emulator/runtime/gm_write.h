// Writes to global memory, plain or as the atomic read-modify-write that the core has armed.
#pragma once

#include "state.h"

namespace ak {
// n elements of `type` (Other: raw bytes, n counts bytes) from src to dst.
void write_gm(void* dst, const void* src, uint64_t bytes, Atomic op, Dtype type);
uint32_t dtype_bytes(Dtype type);
}  // namespace ak
