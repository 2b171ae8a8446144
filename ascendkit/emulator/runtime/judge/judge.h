// Judges: consumers of the record stream inside the process. Records of a block arrive in the order
// in which they are executed, from one host thread; nothing is locked on the way.
#pragma once

#include "runtime/record.h"

namespace ak::judge {

// One judge's memory of a block or of a launch. Judges derive from it and find theirs by index.
struct State {
  virtual ~State() = default;
};
enum Which { kRace, kProtocol, kMemory, kJournals, kJudges };

// A complete record, its accesses included. Vector instructions that touch no memory have none.
void on_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses);
void on_launch_start(Launch& launch);
void on_block_start(Block& block);
void on_block_end(Block& block);
// After all blocks have ended, also when the launch has failed.
void on_launch_end(Launch& launch);

}  // namespace ak::judge
