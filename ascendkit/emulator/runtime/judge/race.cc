#include "runtime/judge/race_state.h"

namespace ak::judge {
namespace {
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

void race_launch_end(Launch& launch) {
  auto& race = *static_cast<LaunchRace*>(launch.judges.of[kRace]);
  auto& order = *static_cast<LaunchOrder*>(launch.judges.of[kProtocol]);
  if (launch.aborted) return;
  judge_blocks(launch, race.reaches, order.this_order);
  judge_cached_lines(launch, race.reaches);
}

}  // namespace ak::judge
