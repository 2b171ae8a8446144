#include "runtime/judge/order.h"

namespace ak::judge {

uint32_t Order::enter(const RecordHead& head) {
  uint32_t slot = slot_of(head.aic, head.sub);
  uint32_t actor = slot * kActorsPerCore + head.pipe;
  auto& seen = waits[slot];
  Actor& a = actors[actor];
  if (a.waits_seen < seen.size() && head.pipe != PIPE_S && head.pipe != PIPE_ALL) {
    size_t i = a.waits_seen;
    while (i < seen.size() && seen[i].issue <= head.issue) ++i;
    if (i != a.waits_seen) a.clock.join(seen[i - 1].clock), a.waits_seen = i;
  }
  return actor;
}

Clock Order::release(uint32_t actor) {
  Actor& a = actors[actor];
  Clock c = a.clock;
  c.at[actor] = a.now++;
  return c;
}
void Order::waited(uint32_t actor, uint32_t issue) {
  if (actor % kActorsPerCore == PIPE_S)
    waits[actor / kActorsPerCore].push_back({issue, actors[actor].clock});
}
void Order::acquire(uint32_t actor, const Clock& clock, uint32_t issue) {
  actors[actor].clock.join(clock);
  waited(actor, issue);
}

void Order::sync(Core& core, const Slot& slot, const RecordHead& head, const Access* accesses,
                 LaunchOrder& launch) {
  uint32_t at = slot_of(head.aic, head.sub);
  switch (Action(slot.action)) {
    case Action::Notify:
      return notify(head, enter(head));
    case Action::Wait: {
      uint32_t actor = enter(head);
      return take(
          head, actor,
          events[event_key(at, uint32_t(head.argument[0]), head.pipe, uint32_t(head.argument[1]))]);
    }
    case Action::SyncAll: {
      Clock all;
      for (uint32_t p = 0; p < kPipes; ++p) all.join(release(at * kActorsPerCore + p));
      for (uint32_t p = 0; p < kPipes; ++p) actors[at * kActorsPerCore + p].clock = all;
      waits[at].push_back({head.issue, all});
      return;
    }
    case Action::SyncPipe: {
      Actor& a = actors[enter(head)];
      a.clock.at[enter(head)] = a.now++;
      return;
    }
    case Action::Unlock: {
      Locks& l = locks[at << 8 | uint32_t(head.argument[1])];
      size_t number = head.argument[0];
      if (l.unlocked.size() <= number) l.unlocked.resize(number + 1), l.there.resize(number + 1);
      l.unlocked[number] = release(enter(head)), l.there[number] = true;
      while (l.summed < l.there.size() && l.there[l.summed]) l.sum.join(l.unlocked[l.summed++]);
      ++l.unlocks, l.unlock_site = head.site, l.unlock_pipe = head.pipe;
      return;
    }
    case Action::Lock: {
      uint32_t actor = enter(head);
      Locks& l = locks[at << 8 | uint32_t(head.argument[1])];
      Clock before;
      // Unlocks that come later in the program may have been executed already.
      bool whole = head.argument[0] >= l.summed;
      if (whole) before = l.sum;
      for (size_t i = whole ? l.summed : 0; i < head.argument[0] && i < l.unlocked.size(); ++i)
        before.join(l.unlocked[i]);
      acquire(actor, before, head.issue);
      ++l.locks, l.lock_site = head.site, l.lock_pipe = head.pipe;
      return;
    }
    case Action::Arrive:
      return arrive(core, head, enter(head), launch);
    case Action::CrossWait:
      return cross_wait(core, head, enter(head), launch);
    case Action::StoreDev: {
      uint32_t actor = enter(head);
      Clock clock = release(actor);
      to_others(core.block->index, at, core.block->launch->spec.grid, clock);
      std::lock_guard<std::mutex> hold(launch.mutex);
      launch.words[accesses[0].base] = {core.block->index, clock};
      return;
    }
    case Action::LoadDev: {
      Clock clock;
      {
        std::lock_guard<std::mutex> hold(launch.mutex);
        auto it = launch.words.find(accesses[0].base);
        if (it == launch.words.end()) return;
        if (it->second.block == core.block->index)
          clock = it->second.clock;
        else
          clock.others = it->second.clock.others;
      }
      this_order = true, launch.this_order = true;
      return acquire(enter(head), clock, head.issue);
    }
    case Action::SimdBegin:
    case Action::SimdEnd:
    case Action::SimtBegin:
    case Action::SimtEnd:
    case Action::MemBar:
      ++actors[enter(head)].now;
      return;
    default:
      return;
  }
}

Order& order_of(Core& core) { return *static_cast<Order*>(core.block->judges.of[kProtocol]); }
LaunchOrder& launch_order(Core& core) {
  return *static_cast<LaunchOrder*>(core.block->launch->judges.of[kProtocol]);
}
void order_block_end(Block& block) { static_cast<Order*>(block.judges.of[kProtocol])->end(block); }

}  // namespace ak::judge
