// Signals between cores, and between the blocks of a launch.
#include "runtime/judge/order.h"

namespace ak::judge {

// Enters a release into the clock that other blocks see.
void Order::to_others(uint32_t block, uint32_t slot, uint32_t grid, Clock& clock) {
  releases[slot].push_back(clock);
  auto known = clock.others ? std::make_shared<std::vector<uint32_t>>(*clock.others)
                            : std::make_shared<std::vector<uint32_t>>(3ull * grid);
  (*known)[3 * block + slot] = uint32_t(releases[slot].size());
  clock.others = std::move(known);
}

void Order::arrive(Core& core, const RecordHead& head, uint32_t actor, LaunchOrder& launch) {
  uint32_t id = uint32_t(head.argument[1]);
  Clock clock = release(actor);
  Block& b = *core.block;
  switch (Scope(head.argument[0])) {
    case Scope::Intra:
      return core.aic ? signal(head, actor, 1 + id / 16, id % 16, clock)
                      : signal(head, actor, 0, id % 16 + 16 * core.sub, clock);
    case Scope::Inter: {
      uint32_t slot = slot_of(core.aic, core.sub), key = uint32_t(core.aic) << 8 | id;
      Clock seen = clock;
      to_others(b.index, slot, core.block->launch->spec.grid, seen);
      std::lock_guard<std::mutex> hold(launch.mutex);
      auto& all = launch.inter[key];
      size_t cores = core.block->launch->cores_of(core.aic);
      all.arrivals.resize(cores), all.waits.resize(cores);
      uint32_t turn = all.arrivals[core.index]++;
      if (all.generations.size() <= turn) all.generations.resize(turn + 1);
      join(all.generations[turn], seen.others);
      auto& here = inter[key];
      if (here.size() <= turn) here.resize(turn + 1);
      here[turn].join(clock);
      return;
    }
    case Scope::Block:
      if (core.aic) {
        for (uint32_t s = 0; s < 2; ++s)
          if (b.vector(s)) signal(head, actor, 1 + s, id, clock);
        return;
      }
      [[fallthrough]];
    case Scope::Subblock: {
      bool block_scope = Scope(head.argument[0]) == Scope::Block;
      auto* mine = half[block_scope][id];
      mine[core.sub].push_back(clock);
      bool pair = b.vector(1) != nullptr;
      if (mine[0].empty() || (pair && mine[1].empty())) return;
      Clock both = mine[0].front();
      mine[0].pop_front();
      if (pair) both.join(mine[1].front()), mine[1].pop_front();
      if (block_scope) {
        if (b.cube()) signal(head, actor, 0, id, both);
        return;
      }
      for (uint32_t s = 0; s < 2; ++s)
        if (b.vector(s)) signal(head, actor, 1 + s, id, both);
      return;
    }
  }
}

void Order::cross_wait(Core& core, const RecordHead& head, uint32_t actor, LaunchOrder& launch) {
  uint32_t id = uint32_t(head.argument[1]);
  if (Scope(head.argument[0]) != Scope::Inter)
    return take(head, actor, flags[slot_of(core.aic, core.sub) << 8 | id]);
  uint32_t key = uint32_t(core.aic) << 8 | id;
  Clock clock;
  {
    std::lock_guard<std::mutex> hold(launch.mutex);
    auto& all = launch.inter[key];
    if (all.waits.size() <= core.index) return;
    uint32_t turn = all.waits[core.index]++;
    if (turn >= all.generations.size()) return;
    clock.others = all.generations[turn];
    auto& here = inter[key];
    if (turn < here.size()) clock.join(here[turn]);
  }
  acquire(actor, clock, head.issue);
}

}  // namespace ak::judge
