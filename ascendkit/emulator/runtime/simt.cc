// SIMT: the threads of a vector function as fibers. A thread runs until it ends, reaches a barrier
// or a warp collective; threads that never block share one stack, so barrier-free bodies are a
// loop.
#include <algorithm>
#include <tuple>

#include "ak/lane_math.h"
#include "mutate.h"
#include "raw.h"
#include "record.h"
#include "runtime/judge/race.h"

namespace ak {
namespace {
constexpr uint32_t kMaxThreads = 2048, kWarp = 32;
constexpr size_t kThreadStack = 64 << 10;
enum class State : uint8_t { Fresh, Ready, Barrier, Collective, Ended };

struct Thread {
  Fiber fiber;
  State state = State::Fresh;
  Warp op = Warp::Sync;
  Num type = Num::U32;
  uint64_t value = 0;
  int argument = 0;
  uint32_t phase = 0;  // barriers passed << 16 | collectives of the warp
  // Which collective it waits at: its line and its number since that line was noted. Code without
  // lines falls back to the call's address.
  uint64_t line = 0, count = 0, address = 0;
  auto where() const { return std::tuple(line, count, address); }
  uint3 index = {0, 0, 0};
};
}  // namespace

struct Simt {
  Fiber core;  // the core fiber's registers while a thread runs
  std::vector<Thread> threads;
  Thread* current = nullptr;
  Fiber spare;
  void (*body)(void*);
  void* context;
};

namespace {
void thread_main(void* argument) {
  auto& s = *static_cast<Simt*>(argument);
  for (;;) {
    s.body(s.context);
    s.current->state = State::Ended;
    switch_fiber(s.current->fiber, s.core);  // resumed with another fresh thread on this stack
  }
}

void run_thread(Simt& s, Thread& t) {
  if (t.state == State::Fresh) {
    if (!s.spare.stack) {
      acquire_stack(s.spare, kThreadStack);
      prepare(s.spare, thread_main, &s);
    }
    t.fiber = s.spare;
    s.spare = {};
  }
  t.state = State::Ready;
  s.current = &t;
  threadIdx = t.index;
  simt_thread = uint32_t(&t - s.threads.data());
  simt_phase = t.phase;
  switch_fiber(s.core, t.fiber);
  s.current = nullptr;
  simt_thread = kNoThread;
  if (t.state == State::Ended) {
    if (s.spare.stack) release_stack(s.spare);
    s.spare = t.fiber;
    t.fiber = {};
  }
}

template <class T>
uint64_t fold(Warp op, const std::vector<Thread*>& group) {
  T acc{};
  bool first = true;
  for (Thread* t : group) {
    T v;
    std::memcpy(&v, &t->value, sizeof(T));
    using C = compute_of<T>;
    if (first)
      acc = v;
    else if (op == Warp::Add)
      acc = T(lane::add<C>(C(acc), C(v)));
    else if (op == Warp::Max)
      acc = T(lane::max<C>(C(acc), C(v)));
    else
      acc = T(lane::min<C>(C(acc), C(v)));
    first = false;
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &acc, sizeof(T));
  return bits;
}
// Sums fold as a butterfly over the 32 lanes, absent lanes contributing zero.
template <class T>
uint64_t butterfly_sum(const std::vector<Thread*>& group, const Thread* warp) {
  T v[kWarp] = {};
  for (Thread* t : group) std::memcpy(&v[t - warp], &t->value, sizeof(T));
  using C = compute_of<T>;
  for (uint32_t step = kWarp / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; ++i) v[i] = T(lane::add<C>(C(v[i]), C(v[i + step])));
  uint64_t bits = 0;
  std::memcpy(&bits, &v[0], sizeof(T));
  return bits;
}
uint64_t reduce(Warp op, Num type, const std::vector<Thread*>& group, const Thread* warp) {
  switch (type) {
    case Num::F32:
      return op == Warp::Add ? butterfly_sum<float>(group, warp) : fold<float>(op, group);
    case Num::F16:
      return op == Warp::Add ? butterfly_sum<half>(group, warp) : fold<half>(op, group);
    case Num::S32:
      return fold<int32_t>(op, group);
    case Num::U32:
      return fold<uint32_t>(op, group);
    case Num::S64:
      return fold<int64_t>(op, group);
    case Num::U64:
      return fold<uint64_t>(op, group);
  }
  return 0;
}

// Completes the collective of the group that is first in the text: lanes of a branch finish it
// before all lanes meet again after it. False: no thread waits at a collective.
bool resolve(Thread* warp, uint32_t n) {
  const Thread* first = nullptr;
  for (uint32_t i = 0; i < n; ++i)
    if (warp[i].state == State::Collective && (!first || warp[i].where() < first->where()))
      first = &warp[i];
  if (!first) return false;
  static thread_local std::vector<Thread*> group;
  group.clear();
  uint64_t mask = 0, ballot = 0;
  for (uint32_t i = 0; i < n; ++i)
    if (warp[i].state == State::Collective && warp[i].where() == first->where()) {
      group.push_back(&warp[i]);
      mask |= uint64_t(1) << i;
      ballot |= uint64_t(warp[i].value & 1) << i;
    }
  Warp op = group[0]->op;
  uint64_t result = op == Warp::Add || op == Warp::Max || op == Warp::Min
                        ? reduce(op, group[0]->type, group, warp)
                    : op == Warp::Ballot ? ballot
                                         : mask;
  static thread_local std::vector<uint64_t> values;
  values.clear();
  for (Thread* t : group) {
    if (op != Warp::ShflXor) {
      values.push_back(result);
      continue;
    }
    uint32_t other = uint32_t(t - warp) ^ uint32_t(t->argument);
    bool there = other < n && (mask >> other & 1);
    values.push_back(there ? warp[other].value
                           : t->value);  // an absent lane yields one's own value
  }
  for (size_t i = 0; i < group.size(); ++i)
    group[i]->value = values[i], group[i]->state = State::Ready;
  uint32_t latest = 0;
  for (uint32_t i = 0; i < n; ++i) latest = std::max(latest, warp[i].phase & 0xffff);
  for (Thread* t : group) t->phase = (t->phase & ~0xffffu) | ((latest + 1) & 0xffff);
  return true;
}
}  // namespace

void simt_run(cce::dim3 dim, void (*body)(void*), void* context, uint32_t at) {
  site = at;
  Core& c = core();
  if (c.aic) fail("AK-CORE-001", "SIMT functions run on a vector core");
  uint64_t n = uint64_t(dim.x) * dim.y * dim.z;
  if (n == 0 || n > kMaxThreads)
    fail("AK-SIMT-001", "%llu SIMT threads: a vector core runs 1 to 2048", (unsigned long long)n);
  if (tracing()) record("asc_vf_call", PIPE_V, {}, n, dim.x);
  if (control()) return;
  if (dropped("asc_vf_call")) return;
  Simt s;
  s.body = body, s.context = context;
  if (checking()) judge::threads_begin();
  s.threads.resize(n);
  uint64_t i = 0;
  for (uint32_t z = 0; z < dim.z; ++z)
    for (uint32_t y = 0; y < dim.y; ++y)
      for (uint32_t x = 0; x < dim.x; ++x) s.threads[i++].index = {x, y, z};
  blockDim = {dim.x, dim.y, dim.z};
  Simt* outer = c.simt;
  c.simt = &s;
  for (bool alive = true; alive;) {
    alive = false;
    uint64_t at_barrier = 0, ended = 0;
    for (uint64_t w = 0; w < n; w += kWarp) {
      Thread* warp = &s.threads[w];
      uint32_t lanes = uint32_t(std::min<uint64_t>(kWarp, n - w));
      do {
        for (uint32_t l = 0; l < lanes; ++l)
          if (warp[l].state == State::Fresh || warp[l].state == State::Ready)
            run_thread(s, warp[l]);
      } while (resolve(warp, lanes));
      for (uint32_t l = 0; l < lanes; ++l) warp[l].state == State::Ended ? ++ended : ++at_barrier;
    }
    // Every live thread is at a barrier by now.
    if (at_barrier) {
      alive = true;
      for (auto& t : s.threads)
        if (t.state == State::Barrier) t.state = State::Ready, t.phase += 1 << 16;
    }
  }
  if (s.spare.stack) release_stack(s.spare);
  c.simt = outer;
  blockDim = {1, 1, 1};
  if (tracing()) record("asc_vf_call.end", PIPE_V, {});
}

namespace {
Simt& running(const char* op) {
  Simt* s = core().simt;
  if (!s || !s->current) fail("AK-SIMT-002", "%s outside a SIMT function", op);
  return *s;
}
void pause(Simt& s) { switch_fiber(s.current->fiber, s.core); }
}  // namespace

void simt_barrier() {
  Simt& s = running("asc_syncthreads");
  if (mutating && mutated_away("asc_syncthreads")) return;
  if (tracing()) record("asc_syncthreads", PIPE_V, {}, uint64_t(s.current - s.threads.data()));
  if (dropped("asc_syncthreads")) return;
  s.current->state = State::Barrier;
  pause(s);
}

uint64_t __attribute__((noinline)) simt_warp(Warp op, Num type, uint64_t value, int argument) {
  constexpr const char* names[] = {
      "asc_shfl_xor", "asc_reduce_add.simt", "asc_reduce_max.simt",   "asc_reduce_min.simt",
      "asc_ballot",   "asc_activemask",      "coalesced_threads.sync"};
  Simt& s = running(names[int(op)]);
  Thread& t = *s.current;
  if (op == Warp::Sync && mutating && mutated_away(names[int(op)])) return 0;
  if (tracing()) record(names[int(op)], PIPE_V, {}, uint64_t(s.current - s.threads.data()));
  t.op = op, t.type = type, t.value = value, t.argument = argument;
  ++t.count;
  t.address = t.line ? 0 : uint64_t(__builtin_return_address(0));
  if (op == Warp::Sync && dropped(names[int(op)])) return 0;
  t.state = State::Collective;
  pause(s);
  spoil(names[int(op)], &t.value, sizeof t.value, 4);
  return t.value;
}

void abandon_threads(Core& c) {
  if (!c.simt) return;
  for (auto& t : c.simt->threads)
    if (t.fiber.stack) release_stack(t.fiber);
  if (c.simt->spare.stack) release_stack(c.simt->spare);
  c.simt = nullptr;
}

void simt_line(uint32_t line) {
  Simt* s = core().simt;
  if (s && s->current) s->current->line = line, s->current->count = 0;
}

uint32_t simt_lane() {
  Simt& s = running("laneid");
  uint32_t lane = uint32_t(s.current - s.threads.data()) % kWarp;
  if (tracing()) record("laneid", PIPE_V, {});
  spoil("laneid", &lane, sizeof lane, 4);
  return lane;
}

}  // namespace ak
