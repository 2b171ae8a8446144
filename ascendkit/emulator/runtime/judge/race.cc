#include "runtime/judge/race.h"

#include <cstdio>
#include <cstring>

#include "runtime/judge/shadow.h"

namespace ak::judge {
namespace {
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
constexpr const char* kCodes[] = {"",
                                  "AK-RACE-001",
                                  "AK-RACE-002",
                                  "AK-RACE-003",
                                  "AK-RACE-004",
                                  "AK-RACE-005",
                                  "AK-RACE-006",
                                  "AK-RACE-007"};

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

// One access on its way through a shadow.
struct Touch {
  BlockRace& race;
  const Clock& clock;
  Epoch now;
  uint32_t actor, site;  // site with marks
  Space space;
  uint8_t sub;
  bool simd, strict;

  void conflict(uint32_t code, const Seen& other, bool write, bool other_write, uint64_t low,
                uint64_t high) {
    uint32_t from = actor_in(other.epoch);
    if (code <= 3 && from / kActorsPerCore != actor / kActorsPerCore) code = 7;
    Pair p{code,  site & kSiteMask, other.site & kSiteMask, uint8_t(space),
           write, other_write,      uint8_t(actor),         uint8_t(from),
           sub};
    auto [it, fresh] = race.found.try_emplace(p, Range{low, high, 1});
    if (fresh) return;
    Range& r = it->second;
    ++r.count;
    if (low <= r.end && high >= r.base)
      r.base = std::min(r.base, low), r.end = std::max(r.end, high);
    else if (low < r.base)
      r.base = low, r.end = high;
  }
  bool ordered(const Seen& s) const {
    return !s.epoch || actor_in(s.epoch) == actor || clock.knows(s.epoch);
  }
  // The matrix unit and FixPipe hand fractals over by themselves.
  bool handed_over(const Seen& s) const { return s.site & site & kUnitMark; }
};

struct Read : Touch {
  void operator()(Cell& cell, uint64_t low, uint64_t high, bool) {
    int mine = -1, spare = -1;
    for (int i = 0; i < 3; ++i) {
      const Seen& r = cell.read[i];
      if (r.epoch == now) return;
      if (r.epoch && actor_in(r.epoch) == actor) mine = i;
      if (spare < 0 && (!r.epoch || clock.knows(r.epoch))) spare = i;
    }
    const Seen& w = cell.write;
    if (!ordered(w)) {
      if (!handed_over(w) && !(w.site & site & kAtomicMark)) conflict(1, w, false, true, low, high);
    } else if (w.epoch == now && simd) {
      conflict(4, w, false, true, low, high);
    } else if (site & kCachedMark && space == Space::GM && w.epoch && actor_in(w.epoch) != actor) {
      conflict(6, w, false, true, low, high);
    }
    cell.read[mine >= 0 ? mine : spare >= 0 ? spare : 2] = {now, site};
  }
};
struct Write : Touch {
  void operator()(Cell& cell, uint64_t low, uint64_t high, bool) {
    const Seen& w = cell.write;
    bool commutes = w.site & site & kAtomicMark;
    if (!ordered(w)) {
      if (!handed_over(w) && !commutes) conflict(3, w, true, true, low, high);
    } else if (strict && w.epoch && actor_in(w.epoch) == actor && w.epoch != now && !commutes &&
               time_in(w.epoch) > clock.at[actor]) {
      conflict(5, w, true, true, low, high);
    }
    for (Seen& r : cell.read) {
      if (r.epoch && !ordered(r) && !handed_over(r) && !(r.site & site & kAtomicMark))
        conflict(2, r, true, false, low, high);
      r = {};
    }
    cell.write = {now, site};
  }
};

void log_reach(BlockRace& race, const Actor& a, uint32_t actor, uint32_t site, uint32_t block,
               bool write, uint64_t low, uint64_t high) {
  const std::vector<uint32_t>* knows = a.clock.others.get();
  if (knows && (race.keep.empty() || race.keep.back().get() != knows))
    race.keep.push_back(a.clock.others);
  if (!race.reaches.empty()) {
    Reach& last = race.reaches.back();
    if (last.end == low && last.actor == actor && last.site == site && last.time == a.now &&
        last.write == write && last.knows == knows) {
      last.end = high;
      return;
    }
  }
  race.reaches.push_back({low, high, site, actor, a.now, block, write, knows, {~0u, ~0u, ~0u}});
}
}  // namespace

void race_launch_start(Launch& launch) {
  launch.judges.of[kRace] = new LaunchRace;
  launch.judges.of[kProtocol] = new LaunchOrder;
}
void race_block_start(Block& block) {
  block.judges.of[kRace] = new BlockRace;
  block.judges.of[kProtocol] = new Order;
}

void race_record(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses) {
  Order& order = order_of(core);
  Action action = Action(slot.action);
  if (action == Action::LoadDev) order.sync(core, slot, head, accesses, launch_order(core));
  if (head.accesses) {
    BlockRace& race = *static_cast<BlockRace*>(core.block->judges.of[kRace]);
    uint32_t actor = order.enter(head);
    Actor& a = order.actors[actor];
    bool strict = core.block->launch->spec.flags & kStrict &&
                  (head.pipe == PIPE_MTE2 || head.pipe == PIPE_MTE3);
    if (strict) ++a.now;
    uint32_t site = head.site & kSiteMask;
    if (action == Action::Mmad && (head.argument[1] & 255)) site |= kUnitMark;
    if (action == Action::FixPipe && head.argument[0]) site |= kUnitMark;
    if (action == Action::Raw && head.pipe == PIPE_S) site |= kCachedMark;
    bool device = action == Action::LoadDev || action == Action::StoreDev;
    bool simd = core.in_simd && head.pipe == PIPE_V;
    for (uint32_t i = 0; i < head.accesses; ++i) {
      const Access& x = accesses[i];
      Space space = Space(x.space);
      Touch t{race,
              a.clock,
              epoch(actor, a.now),
              actor,
              site | (x.atomic ? kAtomicMark : 0u),
              space,
              x.sub,
              simd,
              strict};
      // Words that cores signal through are atomic to each other.
      if (device) t.site |= kAtomicMark | kDeviceMark;
      bool one = x.rows == 1 || x.stride == int64_t(x.row_bytes);
      uint64_t rows = one ? 1 : x.rows, bytes = one ? x.row_bytes * x.rows : x.row_bytes;
      if (!bytes) continue;
      Shadow& shadow = race.of(space, x.sub & 1);
      for (uint64_t r = 0; r < rows; ++r) {
        uint64_t low = x.base + uint64_t(x.stride * int64_t(r)), high = low + bytes;
        if (x.write) {
          Write w{t};
          shadow.each(low, high, true, w);
        } else {
          Read w{t};
          shadow.each(low, high, false, w);
        }
        if (space == Space::GM) log_reach(race, a, actor, t.site, head.block, x.write, low, high);
      }
    }
  }
  if (action != Action::Plain && action != Action::LoadDev)
    order.sync(core, slot, head, accesses, launch_order(core));
}

namespace {
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

void race_launch_end(Launch& launch) {
  auto& race = *static_cast<LaunchRace*>(launch.judges.of[kRace]);
  auto& order = *static_cast<LaunchOrder*>(launch.judges.of[kProtocol]);
  if (!launch.aborted) judge_blocks(race.reaches, order.this_order);
}

}  // namespace ak::judge
