// The memory judge: bounds of views, bytes that were never written, alignment of bursts, coverage.
#pragma once

#include "runtime/judge/finding.h"
#include "runtime/judge/judge.h"

namespace ak::judge {

// A read of bytes that nobody had written: no finding yet, whole registers over tails are legal.
// Mirrored in device.py. `base`: an offset on chip, an address in global memory.
struct Candidate {
  uint32_t site, block;
  uint8_t space, sub, aic, pipe;
  uint32_t region;  // of global memory
  uint64_t base, end, count;
};

void memory_launch_start(Launch& launch);
void memory_block_start(Block& block);
void memory_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses);
void memory_block_end(Block& block);
void memory_launch_end(Launch& launch);

}  // namespace ak::judge

extern "C" {
// Of the last checked launch: reads of unwritten bytes, and which bytes of a region were written,
// or written with what had no value (a bit each; null: no byte).
AK_API uint64_t ak_candidates(const ak::judge::Candidate** out);
AK_API const uint64_t* ak_written(uint64_t region, uint32_t unset);
// The last write of one byte of global memory, in the checked launches from ak_watch to ak_watched.
AK_API void ak_watch(uint64_t address);
AK_API uint32_t ak_watched(ak::Finding* out);  // 0: nobody wrote it
// 1: threads may meet in another order in a second run (atomics, scalar reads of global memory).
AK_API uint32_t ak_order_matters();
}
