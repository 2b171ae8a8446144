// What each core did, one word an instruction, so that two launches can be compared: a difference
// in sites is another path, a difference in the rest other addresses or sizes.
#pragma once

#include "runtime/judge/judge.h"

namespace ak::judge {
void journal_launch_start();
void journal_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses);
void journal_block_end(Block& block);
void journal_launch_end();
}  // namespace ak::judge

extern "C" {
// Of the last launch with a journal: for every core, in order, {block << 2 | core, entries} and
// then the entries, site << 40 | hash.
AK_API uint64_t ak_journal(const uint64_t** out);
}
