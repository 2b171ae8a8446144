// Conflicting accesses that nothing orders: within a block, between blocks, between SIMT threads.
#pragma once

#include "runtime/judge/order.h"

namespace ak::judge {

// What one block did to global memory: bytes [base, end), by one actor, at one line.
struct Reach {
  uint64_t base, end;
  uint32_t site;  // and marks
  uint32_t actor, time, block;
  bool write;
  const std::vector<uint32_t>* knows;  // releases of other blocks it comes after; null: none
  uint32_t released[3];                // its block's releases that come after it, by core; ~0: none
};

void race_launch_start(Launch& launch);
void race_block_start(Block& block);
void race_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses);
void race_block_end(Block& block);
void race_launch_end(Launch& launch);

// Races between blocks; `all` is sorted on the way.
void judge_blocks(const Launch& launch, std::vector<Reach>& all, bool this_order);
// Writes of different cores to one line of the data cache, one of them through it.
void judge_cached_lines(const Launch& launch, const std::vector<Reach>& all);

// An access of a SIMT thread to `size` bytes at `at`. Phases count the barriers of the block and,
// in the low half, the collectives of the warp that a thread has passed.
void thread_access(Core& core, Space space, uint64_t at, uint32_t size, bool write, bool atomic,
                   uint32_t thread, uint32_t phase, uint32_t site);
// Another SIMT function begins: nothing that threads did before matters.
void threads_begin();

}  // namespace ak::judge
