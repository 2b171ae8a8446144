// Races between blocks in global memory, judged when all have ended: the result does not depend on
// which block ran first.
#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "runtime/judge/race.h"
#include "runtime/judge/shadow.h"

namespace ak::judge {
namespace {
constexpr uint64_t kMostPairs = 4u << 20;  // looked at; enough to name every pair of lines

bool before(const Reach& a, const Reach& b) {
  if (!b.knows) return false;
  for (uint32_t s = 0; s < 3; ++s)
    if (a.released[s] <= (*b.knows)[3 * a.block + s]) return true;
  return false;
}

struct Pairs {
  bool this_order;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, bool>, Finding> found;
  uint64_t looked_at = 0;

  void judge(const Reach& a, const Reach& b) {
    ++looked_at;
    if (a.block == b.block || (a.site & b.site & kAtomicMark)) return;
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
    auto place = [](const Finding& f) {
      return std::tuple(f.block, f.other_block, f.base, f.bytes);
    };
    Finding f = make(x, y, low, high, stale != nullptr);
    auto [it, fresh] =
        found.try_emplace({stale ? 6u : 8u, x.site & kSiteMask, y.site & kSiteMask, y.write}, f);
    if (fresh) return;
    uint64_t count = it->second.count + 1;
    if (place(f) < place(it->second)) it->second = f;
    it->second.count = count;
  }

  Finding make(const Reach& x, const Reach& y, uint64_t low, uint64_t high, bool stale) const {
    Finding f{};
    std::snprintf(f.code, sizeof f.code, stale ? "AK-RACE-006" : "AK-RACE-008");
    f.site = x.site & kSiteMask, f.other_site = y.site & kSiteMask;
    f.block = x.block, f.other_block = y.block;
    uint32_t here = x.actor / kActorsPerCore, there = y.actor / kActorsPerCore;
    f.aic = here == 0, f.sub = uint8_t(here ? here - 1 : 0), f.pipe = x.actor % kActorsPerCore;
    f.other_aic = there == 0, f.other_sub = uint8_t(there ? there - 1 : 0);
    f.other_pipe = y.actor % kActorsPerCore;
    f.space = uint8_t(Space::GM), f.write = x.write, f.other_write = y.write;
    f.this_order = this_order;
    f.base = low, f.bytes = high - low, f.count = 1;
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
};
}  // namespace

void judge_blocks(std::vector<Reach>& all, bool this_order) {
  Pairs pairs{this_order, {}, 0};
  std::vector<Reach> writes, reads;
  for (const Reach& r : all) (r.write ? writes : reads).push_back(r);
  auto by_place = [](const Reach& a, const Reach& b) {
    return std::tuple(a.base, a.end, a.block, a.site) < std::tuple(b.base, b.end, b.block, b.site);
  };
  std::sort(writes.begin(), writes.end(), by_place);
  std::sort(reads.begin(), reads.end(), by_place);
  // Writes that have begun and not ended; usually one.
  std::vector<const Reach*> open;
  auto keep_open = [&](uint64_t at) {
    std::erase_if(open, [&](const Reach* r) { return r->end <= at; });
  };
  for (const Reach& w : writes) {
    if (pairs.looked_at > kMostPairs) break;
    keep_open(w.base);
    for (const Reach* o : open) pairs.judge(*o, w);
    open.push_back(&w);
  }
  // Reads against writes: both sorted, so those that begin in the other's range are neighbours.
  open.clear();
  std::vector<const Reach*> reading;
  size_t i = 0, j = 0;
  while ((i < writes.size() || j < reads.size()) && pairs.looked_at <= kMostPairs) {
    bool write = j >= reads.size() || (i < writes.size() && writes[i].base <= reads[j].base);
    const Reach& r = write ? writes[i++] : reads[j++];
    keep_open(r.base);
    std::erase_if(reading, [&](const Reach* o) { return o->end <= r.base; });
    for (const Reach* o : write ? reading : open) pairs.judge(*o, r);
    (write ? open : reading).push_back(&r);
  }
  for (auto& [_, f] : pairs.found) report(f);
}

}  // namespace ak::judge
