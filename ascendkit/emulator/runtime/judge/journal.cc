#include "runtime/judge/journal.h"

#include <map>
#include <mutex>

namespace ak::judge {
namespace {
using Words = std::vector<uint64_t>;
struct BlockJournal : State {
  Words of[3];  // cube core, vector cores
};
std::mutex mutex;
std::map<uint64_t, Words> journals;
Words flat;

// Vector instructions and raw accesses are in the traced build alone; how often a scalar core looks
// at global memory may depend on other cores; questions inside expressions have no line of their
// own.
bool kept(const Slot& slot, const RecordHead& head) {
  switch (Action(slot.action)) {
    case Action::Plain:
      return head.pipe != PIPE_V && head.accesses;
    case Action::MemBar:
    case Action::SimdEnd:
    case Action::SimtEnd:
    case Action::SimtBarrier:
    case Action::Warp:
    case Action::LoadDev:
    case Action::Raw:
    case Action::Atomic:
      return false;
    default:
      return true;
  }
}
uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}
}  // namespace

void journal_launch_start() {
  std::lock_guard<std::mutex> hold(mutex);
  journals.clear();
}

void journal_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses) {
  if (!kept(slot, head)) return;
  State*& state = core.block->judges.of[kJournals];
  if (!state) state = new BlockJournal;
  uint64_t hash = mix(mix(mix(head.pipe, head.op), head.argument[0]), head.argument[1]);
  for (const Access* a = accesses; a < accesses + head.accesses; ++a)
    hash = mix(mix(mix(mix(hash, a->base), a->row_bytes), a->rows), uint64_t(a->stride));
  constexpr uint64_t kHash = (uint64_t(1) << 40) - 1;
  auto& words = static_cast<BlockJournal*>(state)->of[core.aic ? 0 : 1 + core.sub];
  words.push_back(uint64_t(head.site) << 40 | (hash & kHash));
}

void journal_block_end(Block& block) {
  auto* state = static_cast<BlockJournal*>(block.judges.of[kJournals]);
  if (!state) return;
  std::lock_guard<std::mutex> hold(mutex);
  for (uint64_t c = 0; c < 3; ++c)
    if (!state->of[c].empty()) journals[uint64_t(block.index) << 2 | c] = std::move(state->of[c]);
}

void journal_launch_end() {
  std::lock_guard<std::mutex> hold(mutex);
  flat.clear();
  for (auto& [core, words] : journals) {
    flat.push_back(core), flat.push_back(words.size());
    flat.insert(flat.end(), words.begin(), words.end());
  }
  journals.clear();
}

}  // namespace ak::judge

extern "C" uint64_t ak_journal(const uint64_t** out) {
  std::lock_guard<std::mutex> hold(ak::judge::mutex);
  *out = ak::judge::flat.data();
  return ak::judge::flat.size();
}
