#include "runtime/judge/memory.h"

#include <algorithm>

#include "runtime/judge/look.h"

namespace ak::judge {
namespace {
// What outlives the launch, for Python to read.
std::vector<Candidate> last_candidates;
std::vector<Tensor> last_tensors;
const Region* last_regions = nullptr;
bool last_order_matters = false;
}  // namespace

void memory_launch_start(Launch& launch) {
  launch.judges.of[kMemory] = new LaunchMemory(launch.spec);
}
void memory_block_start(Block& block) { block.judges.of[kMemory] = new BlockMemory; }

void memory_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses) {
  if (head.accesses) Look(core, head).run(form(slot), slot, accesses, head.accesses);
}

void memory_block_end(Block& block) {
  auto& mine = *static_cast<BlockMemory*>(block.judges.of[kMemory]);
  auto& all = *static_cast<LaunchMemory*>(block.launch->judges.of[kMemory]);
  std::lock_guard<std::mutex> hold(all.mutex);
  all.order_matters |= mine.order_matters;
  all.edges.insert(all.edges.end(), mine.edges.begin(), mine.edges.end());
  for (const Candidate& c : mine.candidates) {
    auto same = std::find_if(all.candidates.begin(), all.candidates.end(), [&](const Candidate& o) {
      return o.site == c.site && o.space == c.space && o.sub == c.sub && o.region == c.region;
    });
    if (same == all.candidates.end()) {
      all.candidates.push_back(c);
      continue;
    }
    if (c.block < same->block) same->block = c.block, same->aic = c.aic, same->pipe = c.pipe;
    same->base = std::min(same->base, c.base), same->end = std::max(same->end, c.end);
    same->count += c.count;
  }
}

void memory_launch_end(Launch& launch) {
  auto& all = *static_cast<LaunchMemory*>(launch.judges.of[kMemory]);
  shared_lines(all.edges);
  std::sort(all.candidates.begin(), all.candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return std::tuple(a.site, a.space, a.sub, a.region) <
                     std::tuple(b.site, b.space, b.sub, b.region);
            });
  last_candidates = std::move(all.candidates);
  last_tensors = std::move(all.tensors.all());
  last_regions = launch.spec.regions;
  last_order_matters = all.order_matters;
}

}  // namespace ak::judge

extern "C" {
uint64_t ak_candidates(const ak::judge::Candidate** out) {
  *out = ak::judge::last_candidates.data();
  return ak::judge::last_candidates.size();
}
const uint64_t* ak_written(uint64_t region, uint32_t unset) {
  for (auto& t : ak::judge::last_tensors) {
    if (t.region != ak::judge::last_regions + region) continue;
    const ak::judge::Bits& bits = unset ? t.unset : t.written;
    return bits.none() ? nullptr : bits.words();
  }
  return nullptr;
}
uint32_t ak_order_matters() { return ak::judge::last_order_matters; }
}
