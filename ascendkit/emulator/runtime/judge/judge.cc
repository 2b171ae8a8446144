#include "runtime/judge/judge.h"

namespace ak::judge {

States::~States() {
  for (State* s : of) delete s;
}

void on_record(Core&, const Slot&, const RecordHead&, const Access*) {}
void on_block_start(Block&) {}
void on_block_end(Block&) {}
void on_launch_end(Launch&) {}

}  // namespace ak::judge
