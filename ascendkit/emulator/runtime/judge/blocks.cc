// Races between blocks in global memory, judged when all have ended: the result does not depend on
// which block ran first.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "runtime/judge/race.h"
#include "runtime/judge/runs.h"
#include "runtime/judge/shadow.h"

namespace ak::judge {
namespace {
uint64_t most_pairs = 64u << 20;  // what lies behind is said to be not judged

bool before(const Reach& a, const Reach& b) {
  if (!b.knows) return false;
  for (uint32_t s = 0; s < 3; ++s)
    if (a.released[s] <= (*b.knows)[3 * a.block + s]) return true;
  return false;
}

struct Pairs {
  const Launch& launch;
  bool this_order;
  // By code, the two sites, whether both write, and the tensor.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, bool, uint32_t>, Runs> found;
  uint64_t looked_at = 0;

  bool full() const { return looked_at >= most_pairs; }
  void judge(const Reach& a, const Reach& b) {
    if (a.block == b.block || (a.site & b.site & kAtomicMark)) return;
    ++looked_at;
    bool first = before(a, b), second = !first && before(b, a);
    // A scalar read through the cache after all, of what another block wrote before.
    const Reach* stale = first && (b.site & kCachedMark) && !b.write    ? &b
                         : second && (a.site & kCachedMark) && !a.write ? &a
                                                                        : nullptr;
    if ((first || second) && !stale) return;
    // The later one of the text, or the write, is named first.
    bool swap = stale                ? stale == &b
                : a.write != b.write ? b.write
                                     : std::tuple(b.site & kSiteMask, b.block) >
                                           std::tuple(a.site & kSiteMask, a.block);
    const Reach &x = swap ? b : a, &y = swap ? a : b;
    uint64_t low = std::max(a.base, b.base), high = std::min(a.end, b.end);
    Runs& runs = found[{stale ? 6u : 8u, x.site & kSiteMask, y.site & kSiteMask, y.write,
                        tensor_of(launch, low)}];
    if (!runs.counted(low, high, x.block, y.block))
      runs.add(make(x, y, low, high, stale != nullptr));
  }

  // Nothing is known of what lies at `r` and behind it.
  Finding stopped(const Reach& r, uint64_t end) const {
    Finding f = places(r, r);
    std::snprintf(f.code, sizeof f.code, "AK-RACE-010");
    f.base = r.base, f.bytes = std::max(end, r.end) - r.base;
    std::snprintf(
        f.detail, sizeof f.detail,
        "cannot judge: after %llu pairs of accesses by different blocks, those from here on "
        "were not compared",
        (unsigned long long)looked_at);
    return f;
  }
  Finding make(const Reach& x, const Reach& y, uint64_t low, uint64_t high, bool stale) const {
    Finding f = places(x, y);
    std::snprintf(f.code, sizeof f.code, stale ? "AK-RACE-006" : "AK-RACE-008");
    f.base = low, f.bytes = high - low;
    if (stale)
      std::snprintf(f.detail, sizeof f.detail,
                    "scalar read through the data cache of what block %u wrote: may be stale",
                    y.block);
    else
      std::snprintf(f.detail, sizeof f.detail,
                    "blocks %u and %u %s the same bytes: no barrier over all cores orders them",
                    x.block, y.block, y.write ? "write" : "write and read");
    return f;
  }
  Finding places(const Reach& x, const Reach& y) const {
    Finding f{};
    f.site = x.site & kSiteMask, f.other_site = y.site & kSiteMask;
    f.block = x.block, f.other_block = y.block;
    uint32_t here = x.actor / kActorsPerCore, there = y.actor / kActorsPerCore;
    f.aic = here == 0, f.sub = uint8_t(here ? here - 1 : 0), f.pipe = x.actor % kActorsPerCore;
    f.other_aic = there == 0, f.other_sub = uint8_t(there ? there - 1 : 0);
    f.other_pipe = y.actor % kActorsPerCore;
    f.space = uint8_t(Space::GM), f.write = x.write, f.other_write = y.write;
    f.this_order = this_order, f.count = 1;
    return f;
  }
};
}  // namespace

void judge_blocks(const Launch& launch, std::vector<Reach>& all, bool this_order) {
  Pairs pairs{launch, this_order, {}, 0};
  std::sort(all.begin(), all.end(), [](const Reach& a, const Reach& b) {
    return std::tuple(a.base, a.end, a.block, a.site) < std::tuple(b.base, b.end, b.block, b.site);
  });
  // From low addresses to high: accesses that have begun and not ended; usually one.
  std::vector<const Reach*> writes, reads;
  for (const Reach& r : all) {
    auto ended = [&](const Reach* o) { return o->end <= r.base; };
    std::erase_if(writes, ended);
    std::erase_if(reads, ended);
    for (const Reach* o : writes) pairs.judge(*o, r);
    if (r.write)
      for (const Reach* o : reads) pairs.judge(*o, r);
    (r.write ? writes : reads).push_back(&r);
    if (!pairs.full()) continue;
    report(pairs.stopped(r, all.back().end));
    break;
  }
  uint32_t part = 0;
  for (auto& [_, runs] : pairs.found) runs.tell(part);
}

}  // namespace ak::judge

extern "C" AK_API uint64_t ak_most_pairs(uint64_t pairs) {
  std::swap(pairs, ak::judge::most_pairs);
  return pairs;
}
