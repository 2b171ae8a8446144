#include "runtime/judge/order.h"

#include <cstdio>
#include <cstring>

namespace ak::judge {
namespace {
constexpr uint32_t kMostSignals = 15;  // a flag counts up to here

uint32_t event_key(uint32_t slot, uint32_t from, uint32_t to, uint32_t id) {
  return slot << 16 | from << 12 | to << 8 | id;
}
const char* scope_name(uint32_t scope) {
  constexpr const char* names[] = {"inter", "subblock", "block", "intra"};
  return names[scope & 3];
}
}  // namespace

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

void Order::unmatched(const RecordHead& head, const char* code, uint32_t other_site,
                      uint32_t other_pipe, const char* detail) {
  Finding f{};
  std::snprintf(f.code, sizeof f.code, "%s", code);
  f.site = head.site, f.other_site = other_site;
  f.block = f.other_block = head.block;
  f.aic = f.other_aic = head.aic, f.sub = f.other_sub = head.sub;
  f.pipe = head.pipe, f.other_pipe = uint8_t(other_pipe);
  f.this_order = this_order;
  std::snprintf(f.detail, sizeof f.detail, "%s", detail);
  report(f);
}

void Order::take(const RecordHead& head, uint32_t actor, Signals& s) {
  if (s.waiting.empty()) return;  // an event of another scope took its place
  acquire(actor, s.waiting.front().clock, head.issue);
  s.waiting.pop_front();
  // Two pipes that take signals of one flag without an order between them: who takes which?
  if (s.last_taken && actor_in(s.last_taken) != actor && !actors[actor].clock.knows(s.last_taken)) {
    this_order = true;
    char text[160];
    std::snprintf(text, sizeof text,
                  "flag %u: %s and %s both wait for it, in no order: either may take a signal",
                  uint32_t(head.argument[1]), pipe_name(head.pipe),
                  pipe_name(actor_in(s.last_taken) % kActorsPerCore));
    unmatched(head, "AK-SYNC-014", s.last_wait_site, actor_in(s.last_taken) % kActorsPerCore, text);
  }
  Epoch now = epoch(actor, actors[actor].now);
  s.last_taken = now, s.last_wait_site = head.site;
  s.taken.push_back(now);
  if (s.taken.size() > kMostSignals + 1) s.taken.pop_front();
}

void Order::notify(const RecordHead& head, uint32_t actor) {
  uint32_t slot = slot_of(head.aic, head.sub), to = uint32_t(head.argument[0]),
           id = uint32_t(head.argument[1]);
  Signals& s = events[event_key(slot, head.pipe, to, id)];
  char text[200];
  if (head.pipe == to) {
    std::snprintf(text, sizeof text, "event %u from %s to itself: a pipe is in order anyway", id,
                  pipe_name(head.pipe));
    unmatched(head, "AK-SYNC-015", 0, to, text);
  }
  // The previous one must be taken before, in every order.
  if (s.signals && (!s.waiting.empty() || !actors[actor].clock.knows(s.last_taken))) {
    std::snprintf(text, sizeof text,
                  "event %u from %s to %s is set again before it is %s taken (set at line %u)", id,
                  pipe_name(head.pipe), pipe_name(to), s.waiting.empty() ? "surely" : "ever",
                  s.last_site);
    unmatched(head, "AK-SYNC-010", s.last_site, head.pipe, text);
  }
  s.waiting.push_back({release(actor), head.site});
  ++s.signals;
  s.last_site = head.site;
}

void Order::signal(const RecordHead& head, uint32_t actor, uint32_t target, uint32_t flag,
                   const Clock& clock) {
  Signals& s = flags[target << 8 | flag];
  char text[200];
  Actor& a = actors[actor];
  if (s.last_signal && actor_in(s.last_signal) != actor && !a.clock.knows(s.last_signal)) {
    this_order = true;
    std::snprintf(
        text, sizeof text, "flag %u: %s and %s both signal it, in no order: a wait may take either",
        flag % 16, pipe_name(head.pipe), pipe_name(actor_in(s.last_signal) % kActorsPerCore));
    unmatched(head, "AK-SYNC-014", s.last_site, actor_in(s.last_signal) % kActorsPerCore, text);
  }
  // Signal n may be the sixteenth that waits unless the wait of number n - 15 surely came before.
  if (s.signals >= kMostSignals) {
    bool over = s.waiting.size() >= kMostSignals;
    if (!over && s.signals - s.waiting.size() >= s.taken.size()) {
      // taken.back() is number signals - waiting.size(), counted from 1.
      size_t back = kMostSignals - s.waiting.size() - 1;
      over = back < s.taken.size() && !a.clock.knows(s.taken[s.taken.size() - 1 - back]);
    }
    if (over) {
      std::snprintf(text, sizeof text,
                    "flag %u may count more than %u signals that nobody has taken", flag % 16,
                    kMostSignals);
      unmatched(head, "AK-SYNC-013", s.last_wait_site, head.pipe, text);
    }
  }
  s.waiting.push_back({clock, head.site});
  ++s.signals;
  s.last_signal = epoch(actor, actors[actor].now - 1), s.last_site = head.site;
}

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

void Order::end(Block& block) {
  char text[200];
  auto left_over = [&](uint32_t core, uint32_t pipe, uint32_t other_pipe, uint32_t site,
                       uint32_t other_site) {
    RecordHead head{};
    head.site = site, head.block = block.index, head.aic = core == 0;
    head.sub = uint8_t(core ? core - 1 : 0), head.pipe = uint8_t(pipe);
    unmatched(head, "AK-SYNC-012", other_site, other_pipe, text);
  };
  for (auto& [key, s] : events)
    if (!s.waiting.empty()) {
      uint32_t from = key >> 12 & 15, to = key >> 8 & 15;
      std::snprintf(text, sizeof text,
                    "event %u from %s to %s is still set at the end: %zu set, never waited for",
                    key & 255, pipe_name(int(from)), pipe_name(int(to)), s.waiting.size());
      left_over(key >> 16, from, to, s.waiting.back().site, s.last_wait_site);
    }
  for (auto& [key, s] : flags)
    if (!s.waiting.empty()) {
      uint32_t from = actor_in(s.last_signal) % kActorsPerCore;
      std::snprintf(text, sizeof text, "flag %u counts %zu at the end: signalled, never waited for",
                    key & 255, s.waiting.size());
      left_over(key >> 8, from, from, s.waiting.back().site, s.last_wait_site);
    }
  for (auto& [key, l] : locks)
    if (l.locks != l.unlocks) {
      std::snprintf(text, sizeof text, "lock %u: %u times taken, %u times given back", key & 255,
                    l.locks, l.unlocks);
      left_over(key >> 8, l.locks ? l.lock_pipe : l.unlock_pipe, l.unlock_pipe,
                l.locks ? l.lock_site : l.unlock_site, l.locks ? l.unlock_site : 0);
    }
}

Order& order_of(Core& core) { return *static_cast<Order*>(core.block->judges.of[kProtocol]); }
LaunchOrder& launch_order(Core& core) {
  return *static_cast<LaunchOrder*>(core.block->launch->judges.of[kProtocol]);
}
void order_block_end(Block& block) { static_cast<Order*>(block.judges.of[kProtocol])->end(block); }

}  // namespace ak::judge
