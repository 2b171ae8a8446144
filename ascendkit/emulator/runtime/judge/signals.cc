// What the protocol asks of events, flags and locks.
#include <cstdio>

#include "runtime/judge/order.h"

namespace ak::judge {
namespace {
constexpr uint32_t kMostSignals = 15;  // a flag counts up to here
}  // namespace

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

}  // namespace ak::judge
