// Synchronisation: events between pipes, locks, barriers, and counters between cores.
#include "mutate.h"
#include "record.h"
#include "stuck.h"

namespace ak {
namespace {

void check_id(const char* what, uint32_t id, uint32_t limit) {
  if (id >= limit)
    fail("AK-SYNC-001", "%s id %u is out of range: legal ids are 0..%u", what, id, limit - 1);
}
void check_pipe(const char* what, pipe_t pipe) {
  if (pipe >= kPipes) fail("AK-SYNC-002", "%s needs one pipe, got %s", what, pipe_name(pipe));
}

template <class READY>
struct Wait final : WaitTask {
  READY ready;
  std::function<Waits()> what;
  Wait(READY r, std::function<Waits()> w) : ready(std::move(r)), what(std::move(w)) {}
  bool step() override { return ready(); }
  Waits describe() const override { return what(); }
};

// Runs `ready` (which takes what it waits for) on a pipe; on the scalar pipe the core itself waits.
template <class READY, class WHAT>
void wait_on(pipe_t pipe, READY ready, WHAT what) {
  if (pipe == PIPE_S) {
    core().running = ++core().issued;
    block_until(ready, what);
    return;
  }
  if (pipe_idle(pipe) && ready()) return;
  enqueue(pipe, new Wait<READY>(ready, what));
}

void released(Core& c) {
  for (auto& q : c.queue)
    if (!q.empty()) return pump(c);
}

void signal_core(Core* target, uint32_t id, uint32_t pipe) {
  target->signalled_at[id] = site, target->signalled_by[id] = uint8_t(pipe);
  target->cross[id].fetch_add(1);
  worker->launch->epoch.fetch_add(1);
}

void arrive_inter(Core& c, uint32_t id) {
  Launch& launch = *worker->launch;
  std::lock_guard<std::mutex> hold(launch.mutex);
  auto& arrived = launch.inter[c.aic][id];
  uint32_t n = launch.cores_of(c.aic);
  if (arrived.empty()) arrived.assign(n, 0);
  ++arrived[c.index];
  for (int count : arrived)
    if (count == 0) return;
  for (int& count : arrived) --count;
  for (Core* other : launch.by_kind[c.aic])
    if (other) other->signalled_at[id] = site, other->cross[id].fetch_add(1);
  launch.epoch.fetch_add(1);
}

void arrive_now(Core& c, Scope scope, uint32_t id, uint32_t pipe) {
  Block& b = *c.block;
  switch (scope) {
    case Scope::Inter:
      arrive_inter(c, id);
      return;
    case Scope::Intra:
      if (c.aic) {
        // The cube core addresses its second vector core with ids from 16.
        if (Core* v = b.vector(id / 16))
          signal_core(v, id % 16, pipe);
        else
          fail("AK-SYNC-004", "intra-block arrive %u addresses a vector core this launch has not",
               id);
      } else if (Core* cube = b.cube()) {
        signal_core(cube, id % 16 + 16 * c.sub, pipe);
      } else {
        fail("AK-SYNC-004", "intra-block arrive in a kernel without a cube core");
      }
      return;
    case Scope::Subblock: {
      if (c.aic) fail("AK-SYNC-004", "sub-block synchronisation is between vector cores");
      ++b.sub_arrived[id][c.sub];
      int* n = b.sub_arrived[id];
      bool both = b.vector(1) ? n[0] > 0 && n[1] > 0 : n[0] > 0;
      if (!both) return;
      for (uint32_t s = 0; s < 2; ++s)
        if (Core* v = b.vector(s)) --n[s], signal_core(v, id, pipe);
      return;
    }
    case Scope::Block: {
      if (c.aic) {
        for (uint32_t s = 0; s < 2; ++s)
          if (Core* v = b.vector(s)) signal_core(v, id, pipe);
        return;
      }
      int* n = b.block_arrived[id];
      ++n[c.sub];
      if (n[0] > 0 && n[1] > 0 && b.cube()) --n[0], --n[1], signal_core(b.cube(), id, pipe);
      return;
    }
  }
}
}  // namespace

void sync_notify(pipe_t from, pipe_t to, uint32_t id) {
  check_pipe("asc_sync_notify", from), check_pipe("asc_sync_notify", to);
  check_id("event", id, kEvents);
  Core& c = core();
  if (mutate_sync("asc_sync_notify", from, to, id, kEvents, [=] { sync_notify(from, to, id); }))
    return;
  if (trace_sync("asc_sync_notify", from, to, id)) return;
  on_pipe(from, [&c, from, to, id] {
    ++c.flag[from][to][id];
    c.set_at[from][to][id] = site;
    stream_record("asc_sync_notify", from, to, id);
    released(c);
  });
}

void sync_wait(pipe_t from, pipe_t to, uint32_t id) {
  check_pipe("asc_sync_wait", from), check_pipe("asc_sync_wait", to);
  check_id("event", id, kEvents);
  Core& c = core();
  if (mutate_sync("asc_sync_wait", from, to, id, kEvents, [=] { sync_wait(from, to, id); })) return;
  if (trace_sync("asc_sync_wait", from, to, id)) return;
  wait_on(
      to,
      [&c, from, to, id] {
        if (c.flag[from][to][id] == 0) return false;
        --c.flag[from][to][id];
        c.taken_at[from][to][id] = site;
        stream_record("asc_sync_wait", to, from, id);
        return true;
      },
      [&c, from, to, id] {
        uint32_t set = c.set_at[from][to][id], taken = c.taken_at[from][to][id];
        std::string text = "event " + std::to_string(id) + " from " + pipe_name(from) + " to " +
                           pipe_name(to) +
                           (!set ? std::string(", which nobody has set")
                                 : ", last set at line " + std::to_string(set) +
                                       " and taken at line " + std::to_string(taken));
        return Waits{text, true, set, uint32_t(from)};
      });
}

void sync_all() {
  Core& c = core();
  pipe_t all = PIPE_ALL;
  uint32_t none = 0;
  if (mutate_sync("asc_sync", all, all, none, 1, [] { sync_all(); })) return;
  if (trace_sync("asc_sync", PIPE_ALL, PIPE_ALL, 0)) return;
  c.running = ++c.issued;
  block_until(
      [&c] {
        for (auto& q : c.queue)
          if (!q.empty()) return false;
        return true;
      },
      [&c] { return Waits{"all pipes to drain (asc_sync): " + busy_pipes(c)}; });
  stream_record("asc_sync", PIPE_ALL, 0, 0);
}

void sync_pipe(pipe_t pipe) {
  if (pipe == PIPE_ALL) return sync_all();
  pipe_t any = PIPE_ALL;
  uint32_t none = 0;
  if (mutate_sync("asc_sync_pipe", pipe, any, none, 1, [=] { sync_pipe(pipe); })) return;
  trace_sync("asc_sync_pipe", pipe, pipe, 0);
  on_pipe(pipe, [pipe] { stream_record("asc_sync_pipe", pipe, 0, 0); });
}

void lock(pipe_t pipe, uint32_t id, asc_lock_mode mode) {
  check_pipe("asc_lock", pipe);
  check_id("lock", id, kLocks);
  Core& c = core();
  pipe_t any = PIPE_ALL;
  if (mutate_sync("asc_lock", pipe, any, id, kLocks, [=] { lock(pipe, id, mode); })) return;
  if (trace_sync("asc_lock", pipe, PIPE_ALL, id)) return;
  if (mode == ASC_LOCK_NON_BLOCK) {  // takes its place in the order, waits for nobody
    on_pipe(pipe, [pipe, id] { stream_record("asc_lock", pipe, 0, id); });
    return;
  }
  uint64_t before = c.lock[id].issued;
  uint32_t last = c.lock[id].site, by = c.lock[id].pipe;
  wait_on(
      pipe,
      [&c, pipe, id, before] {
        if (c.lock[id].done < before) return false;
        stream_record("asc_lock", pipe, before, id);
        return true;
      },
      [id, last, by] {
        std::string text = "lock " + std::to_string(id) + ", to be given back by " +
                           pipe_name(int(by)) + " at line " + std::to_string(last);
        return Waits{text, true, last, by};
      });
}

void unlock(pipe_t pipe, uint32_t id, asc_lock_mode mode) {
  check_pipe("asc_unlock", pipe);
  check_id("lock", id, kLocks);
  Core& c = core();
  pipe_t any = PIPE_ALL;
  if (mutate_sync("asc_unlock", pipe, any, id, kLocks, [=] { unlock(pipe, id, mode); })) return;
  if (trace_sync("asc_unlock", pipe, PIPE_ALL, id)) return;
  uint64_t number = c.lock[id].issued++;
  c.lock[id].site = site, c.lock[id].pipe = pipe;
  on_pipe(pipe, [&c, pipe, id, number] {
    ++c.lock[id].done;
    stream_record("asc_unlock", pipe, number, id);
    released(c);
  });
}

void cross_arrive(Scope scope, pipe_t pipe, uint32_t id) {
  constexpr const char* names[] = {"asc_sync_inter_arrive", "asc_sync_subblock_arrive",
                                   "asc_sync_block_arrive", "asc_sync_intra_arrive"};
  check_pipe(names[int(scope)], pipe);
  Core& c = core();
  check_id("cross-core flag", id, c.aic && scope == Scope::Intra ? 32 : 16);
  pipe_t any = PIPE_ALL;
  uint32_t range = c.aic && scope == Scope::Intra ? 32 : 16;
  if (mutate_sync(names[int(scope)], pipe, any, id, range, [=] { cross_arrive(scope, pipe, id); }))
    return;
  if (trace_sync(names[int(scope)], pipe, pipe, id)) return;
  const char* name = names[int(scope)];
  on_pipe(pipe, [&c, name, pipe, scope, id] {
    stream_record(name, pipe, uint64_t(scope), id);
    arrive_now(c, scope, id, uint32_t(pipe));
  });
}

void cross_wait(Scope scope, pipe_t pipe, uint32_t id) {
  constexpr const char* names[] = {"asc_sync_inter_wait", "asc_sync_subblock_wait",
                                   "asc_sync_block_wait", "asc_sync_intra_wait"};
  check_pipe(names[int(scope)], pipe);
  Core& c = core();
  check_id("cross-core flag", id, c.aic && scope == Scope::Intra ? 32 : 16);
  pipe_t any = PIPE_ALL;
  uint32_t range = c.aic && scope == Scope::Intra ? 32 : 16;
  if (mutate_sync(names[int(scope)], pipe, any, id, range, [=] { cross_wait(scope, pipe, id); }))
    return;
  if (trace_sync(names[int(scope)], pipe, pipe, id)) return;
  const char* name = names[int(scope)];
  wait_on(
      pipe,
      [&c, name, pipe, scope, id] {
        if (c.cross[id].load() <= 0) return false;
        c.cross[id].fetch_sub(1);
        stream_record(name, pipe, uint64_t(scope), id);
        return true;
      },
      [&c, name, scope, id] {
        uint32_t last = c.signalled_at[id];
        std::string text = std::string(name) + " flag " + std::to_string(id) + " of " +
                           signaller(c, scope, id) +
                           (last ? ", last signalled at line " + std::to_string(last)
                                 : std::string(", which nobody has signalled"));
        return Waits{text, true, last, c.signalled_by[id]};
      });
}

}  // namespace ak
