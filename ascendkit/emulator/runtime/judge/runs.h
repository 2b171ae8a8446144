// Findings of one mistake in one tensor, by the bytes they are about.
#pragma once

#include <map>
#include <tuple>

#include "runtime/judge/finding.h"
#include "runtime/state.h"

namespace ak::judge {

// The tensor that holds `at`, from 1; 0: none.
inline uint32_t tensor_of(const Launch& launch, uint64_t at) {
  for (uint64_t i = 0; i < launch.spec.region_count; ++i) {
    const Region& r = launch.spec.regions[i];
    if (at >= r.base && at < r.base + r.bytes) return uint32_t(i + 1);
  }
  return 0;
}

// Runs of bytes that neither touch nor overlap; of each the finding of the lowest blocks.
class Runs {
 public:
  using Place = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t>;
  // Counts what a run holds already, for blocks no lower than its own; false: it has to be added.
  bool counted(uint64_t low, uint64_t high, uint32_t block, uint32_t other) {
    auto it = of_.upper_bound(low);
    if (it == of_.begin() || (--it)->second.end < high) return false;
    Finding& f = it->second.first;
    if (Place(block, other, low, high - low) < place(f)) return false;
    ++f.count;
    return true;
  }
  void add(const Finding& f) {
    uint64_t low = f.base, high = f.base + f.bytes;
    auto it = of_.upper_bound(low);
    if (it != of_.begin() && std::prev(it)->second.end >= low) --it;
    Run joined{high, f};
    while (it != of_.end() && it->first <= high) {
      low = std::min(low, it->first), joined.end = std::max(joined.end, it->second.end);
      join(joined.first, it->second.first);
      it = of_.erase(it);
    }
    of_.emplace_hint(it, low, joined);
  }
  // One finding a run; the last one takes what would be too many, with the bytes between.
  void tell(uint32_t& part) const {
    size_t left = std::min(of_.size(), kMost);
    for (auto it = of_.begin(); left; ++it) {
      Finding f = it->second.first;
      uint64_t end = it->second.end;
      f.base = it->first, f.part = ++part;
      if (--left == 0)
        for (++it; it != of_.end(); ++it) end = it->second.end, f.count += it->second.first.count;
      f.bytes = end - f.base;
      report(f);
      if (!left) return;
    }
  }

 private:
  static constexpr size_t kMost = 256;
  struct Run {
    uint64_t end;
    Finding first;
  };
  static Place place(const Finding& f) { return Place(f.block, f.other_block, f.base, f.bytes); }
  static void join(Finding& one, const Finding& two) {
    uint64_t count = one.count + two.count;
    if (place(two) < place(one)) one = two;
    one.count = count;
  }
  std::map<uint64_t, Run> of_;
};

}  // namespace ak::judge
