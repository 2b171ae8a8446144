// What a block leaves behind when it ends: its conflicts, and its accesses to global memory.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/judge/race_state.h"

namespace ak::judge {
namespace {
constexpr const char* kCodes[] = {"",
                                  "AK-RACE-001",
                                  "AK-RACE-002",
                                  "AK-RACE-003",
                                  "AK-RACE-004",
                                  "AK-RACE-005",
                                  "AK-RACE-006",
                                  "AK-RACE-007"};

void put_out(Block& block, BlockRace& race, bool this_order) {
  constexpr const char* kinds[] = {"", "reads what", "overwrites what", "writes where"};
  for (auto& [p, r] : race.found) {
    Finding f{};
    std::snprintf(f.code, sizeof f.code, "%s", kCodes[p.code]);
    f.site = p.site, f.other_site = p.other_site;
    f.block = f.other_block = block.index;
    uint32_t here = p.actor / kActorsPerCore, there = p.other_actor / kActorsPerCore;
    f.aic = here == 0, f.sub = uint8_t(here ? here - 1 : 0), f.pipe = p.actor % kActorsPerCore;
    f.other_aic = there == 0, f.other_sub = uint8_t(there ? there - 1 : 0);
    f.other_pipe = p.other_actor % kActorsPerCore;
    f.space = p.space, f.write = p.write, f.other_write = p.other_write;
    f.this_order = this_order;
    f.base = r.base, f.bytes = r.end - r.base, f.count = r.count;
    const char* pipe = pipe_name(f.pipe);
    const char* other = pipe_name(f.other_pipe);
    switch (p.code) {
      case 4:
        std::snprintf(f.detail, sizeof f.detail,
                      "loads what the same vector function stored, no memory barrier between");
        break;
      case 5:
        std::snprintf(f.detail, sizeof f.detail,
                      "two copies of %s write the same bytes, no barrier between", pipe);
        break;
      case 6:
        std::snprintf(f.detail, sizeof f.detail,
                      "scalar read through the data cache of what %s wrote: may be stale", other);
        break;
      default: {
        int kind = !p.write ? 1 : p.other_write ? 3 : 2;
        std::snprintf(f.detail, sizeof f.detail, "%s %s %s %s: nothing orders them", pipe,
                      kinds[kind], other, p.other_write ? "wrote" : "reads");
      }
    }
    report(f);
  }
}

// Joins what one actor did at one line; without order between blocks, whenever it did.
void compact(std::vector<Reach>& all) {
  auto key = [](const Reach& r) {
    return std::tuple(r.write, r.site, r.actor, r.knows, r.released[0], r.released[1],
                      r.released[2], r.base, r.end);
  };
  std::sort(all.begin(), all.end(),
            [&](const Reach& a, const Reach& b) { return key(a) < key(b); });
  size_t n = 0;
  for (const Reach& r : all) {
    if (n) {
      Reach& last = all[n - 1];
      if (last.end >= r.base && last.write == r.write && last.site == r.site &&
          last.actor == r.actor && last.knows == r.knows &&
          std::memcmp(last.released, r.released, sizeof r.released) == 0) {
        last.end = std::max(last.end, r.end);
        continue;
      }
    }
    all[n++] = r;
  }
  all.resize(n);
}
}  // namespace

void race_block_end(Block& block) {
  BlockRace& race = *static_cast<BlockRace*>(block.judges.of[kRace]);
  Order& order = *static_cast<Order*>(block.judges.of[kProtocol]);
  order.end(block);
  put_out(block, race, order.this_order);
  for (Reach& r : race.reaches)
    for (uint32_t s = 0; s < 3; ++s) {
      auto& all = order.releases[s];
      auto it = std::partition_point(
          all.begin(), all.end(), [&](const Clock& c) { return !c.knows(epoch(r.actor, r.time)); });
      if (it != all.end()) r.released[s] = uint32_t(it - all.begin()) + 1;
    }
  compact(race.reaches);
  auto& launch = *static_cast<LaunchRace*>(block.launch->judges.of[kRace]);
  std::lock_guard<std::mutex> hold(launch.mutex);
  launch.reaches.insert(launch.reaches.end(), race.reaches.begin(), race.reaches.end());
  launch.keep.insert(launch.keep.end(), race.keep.begin(), race.keep.end());
  if (order.this_order)
    static_cast<LaunchOrder*>(block.launch->judges.of[kProtocol])->this_order = true;
}

}  // namespace ak::judge
