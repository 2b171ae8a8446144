// Lines of the data cache of the scalar core in global memory. Caches of cores are not coherent and
// keep whole lines: what one core wrote through its cache goes back with the bytes around it, over
// what another core has written there meanwhile. Which of the two stays, no order of the two writes
// decides.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "runtime/judge/race.h"
#include "runtime/judge/runs.h"
#include "runtime/judge/shadow.h"

namespace ak::judge {
namespace {
constexpr uint64_t kCacheLine = 64;

uint32_t core_in(const Reach& r) { return r.actor / kActorsPerCore; }
bool same_core(const Reach& a, const Reach& b) {
  return a.block == b.block && core_in(a) == core_in(b);
}
Finding finding(const Reach& x, const Reach& y, uint64_t line) {
  Finding f{};
  std::snprintf(f.code, sizeof f.code, "AK-RACE-011");
  f.site = x.site & kSiteMask, f.other_site = y.site & kSiteMask;
  f.block = x.block, f.other_block = y.block;
  f.aic = core_in(x) == 0, f.sub = uint8_t(core_in(x) ? core_in(x) - 1 : 0);
  f.other_aic = core_in(y) == 0, f.other_sub = uint8_t(core_in(y) ? core_in(y) - 1 : 0);
  f.pipe = x.actor % kActorsPerCore, f.other_pipe = y.actor % kActorsPerCore;
  f.space = uint8_t(Space::GM), f.write = f.other_write = 1;
  f.base = std::max(x.base, line), f.count = 1;
  f.bytes = std::min(x.end, line + kCacheLine) - f.base;
  std::snprintf(
      f.detail, sizeof f.detail,
      "bytes of one line of %llu, written through the data cache here and by block %u there%s",
      (unsigned long long)kCacheLine, y.block,
      y.site & kCachedMark ? ", through its data cache too" : "");
  return f;
}
}  // namespace

void judge_cached_lines(const Launch& launch, const std::vector<Reach>& all) {
  std::map<uint64_t, std::vector<const Reach*>> lines;  // written through a cache
  auto each_line = [](const Reach& r, auto visit) {
    for (uint64_t l = r.base / kCacheLine; l * kCacheLine < r.end; ++l) visit(l);
  };
  for (const Reach& r : all)
    if (r.write && r.site & kCachedMark) each_line(r, [&](uint64_t l) { lines[l].push_back(&r); });
  if (lines.empty()) return;
  // By the two sites, their actors (one line may run on several cores), and the tensor.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>, Runs> found;
  for (const Reach& r : all) {
    if (!r.write) continue;
    for (auto it = lines.lower_bound(r.base / kCacheLine);
         it != lines.end() && it->first * kCacheLine < r.end; ++it)
      for (const Reach* c : it->second) {
        // Of the same bytes other findings tell.
        bool apart = r.end <= c->base || c->end <= r.base;
        if (!apart || same_core(*c, r)) continue;
        Finding f = finding(*c, r, it->first * kCacheLine);
        found[{f.site, f.other_site, c->actor, r.actor, tensor_of(launch, f.base)}].add(f);
      }
  }
  uint32_t part = 0;
  for (auto& [_, runs] : found) runs.tell(part);
}

}  // namespace ak::judge
