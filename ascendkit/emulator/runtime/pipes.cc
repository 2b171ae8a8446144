// Pipes: queues that are empty unless a wait blocks their head, or replay defers everything.
#include "mutate.h"

namespace ak {

thread_local Worker* worker = nullptr;
__thread uint32_t site = 0;

namespace {
constexpr size_t kQueueLimit = 4096;

uint64_t next_random() {  // xorshift64*: the adversarial order only needs to be seeded and cheap
  uint64_t& x = worker->rng;
  x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
  return x * 0x2545f4914f6cdd1dull;
}

bool step_head(Core& c, int pipe) {
  auto& q = c.queue[pipe];
  if (q.empty()) return false;
  uint32_t issued_at = site, running = c.running;
  site = q.front().site;
  c.running = q.front().issue;
  bool done = q.front().task->step();
  site = issued_at;
  c.running = running;
  if (done) {
    q.pop_front();
    c.progress = true;
  }
  return done;
}
}  // namespace

const char* pipe_name(int pipe) {
  constexpr const char* names[] = {"PIPE_S",    "PIPE_V",    "PIPE_M",   "PIPE_MTE1",
                                   "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX", "PIPE_ALL"};
  return names[pipe];
}

bool pipe_idle(pipe_t pipe) {
  Core& c = core();
  c.running = ++c.issued;
  return pipe == PIPE_S ||
         (c.queue[pipe].empty() && !worker->launch->spec.replay && !motion_watches(c, pipe));
}

void enqueue(pipe_t pipe, Task* task) {
  Core& c = core();
  if (c.motion && motion_holds(c, pipe, task)) return;
  c.queue[pipe].push_back({std::unique_ptr<Task>(task), site, c.issued});
  if (worker->launch->spec.replay && next_random() % 3 == 0) pump(c);
  // A scalar core that runs far ahead of a blocked pipe stalls, as it does behind a full queue.
  if (c.queue[pipe].size() > kQueueLimit)
    block_until([&c, pipe] { return c.queue[pipe].size() <= kQueueLimit / 2; },
                [pipe] { return Waits{std::string("room in the queue of ") + pipe_name(pipe)}; });
  if (c.motion) motion_issued(c, pipe);
}

void pump(Core& c) {
  if (c.pumping) return;  // a task that releases another pipe is inside the outer loop already
  c.pumping = true;
  if (worker->launch->spec.replay) {
    // One random legal step at a time, until a coin or the absence of ready pipes stops it.
    for (int stuck = 0; stuck < kPipes;) {
      int first = int(next_random() % kPipes);
      stuck = 0;
      while (stuck < kPipes && !step_head(c, (first + stuck) % kPipes)) ++stuck;
      if (next_random() % 16 == 0) break;
    }
  } else {
    for (bool moved = true; moved;) {
      moved = false;
      for (int p = 0; p < kPipes; ++p)
        while (step_head(c, p)) moved = true;
    }
  }
  c.pumping = false;
}

void block_until(const std::function<bool()>& ready, const std::function<Waits()>& what) {
  Core& c = core();
  if (c.motion) motion_flush(c);
  for (;;) {
    pump(c);
    if (ready()) break;
    c.waiting = what;
    c.site = site;
    yield();
  }
  c.waiting = nullptr;
  c.progress = true;
}

}  // namespace ak
