// What the judge of races knows of a block and of a launch.
#pragma once

#include <map>
#include <mutex>

#include "runtime/judge/race.h"
#include "runtime/judge/shadow.h"

namespace ak::judge {

constexpr uint32_t kSpaces = uint32_t(Space::SS) + 1;

struct LaunchRace : State {
  std::mutex mutex;
  std::vector<Reach> reaches;
  std::vector<Others> keep;  // what reaches point to
};

// A conflict, gathered per block and reported once.
struct Pair {
  uint32_t code, site, other_site;
  uint8_t space, write, other_write, actor, other_actor, sub;
  auto operator<=>(const Pair&) const = default;
};
struct Range {
  uint64_t base, end, count;
};
struct BlockRace : State {
  Cells cells;
  std::unique_ptr<Shadow> memory[kSpaces][2];
  std::map<Pair, Range> found;
  std::vector<Reach> reaches;
  std::vector<Others> keep;

  Shadow& of(Space space, uint32_t sub) {
    auto& m = memory[int(space)][space == Space::UB ? sub : 0];
    if (!m) m = std::make_unique<Shadow>(cells, space == Space::GM ? 0 : capacity(space));
    return *m;
  }
};

}  // namespace ak::judge
