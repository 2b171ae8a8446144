#include "runtime/judge/judge.h"

#include "runtime/judge/journal.h"
#include "runtime/judge/memory.h"
#include "runtime/judge/race.h"

namespace ak::judge {

States::~States() {
  for (State* s : of) delete s;
}

void on_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses) {
  uint64_t flags = core.block->launch->spec.flags;
  if (flags & kJournal) journal_record(core, slot, head, accesses);
  if (!(flags & kCheck)) return;
  race_record(core, slot, head, accesses);
  memory_record(core, slot, head, accesses);
}
void on_launch_start(Launch& launch) {
  if (launch.spec.flags & kJournal) journal_launch_start();
  if (!(launch.spec.flags & kCheck)) return;
  race_launch_start(launch);
  memory_launch_start(launch);
}
void on_block_start(Block& block) {
  if (!checking()) return;
  race_block_start(block);
  memory_block_start(block);
}
void on_block_end(Block& block) {
  if (journaling()) journal_block_end(block);
  if (!checking()) return;
  race_block_end(block);
  memory_block_end(block);
}
void on_launch_end(Launch& launch) {
  if (launch.spec.flags & kJournal) journal_launch_end();
  if (!(launch.spec.flags & kCheck)) return;
  race_launch_end(launch);
  memory_launch_end(launch);
}

}  // namespace ak::judge
