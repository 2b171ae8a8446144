// Workers run the cores of their blocks in turn. A block stays with its worker; more blocks start
// only while the running ones are blocked and cores are left, so independent blocks run one by one.
#include <sched.h>

#include <chrono>
#include <condition_variable>

#include "mutate.h"
#include "runtime/judge/judge.h"
#include "runtime/raw.h"
#include "stuck.h"

__thread uint32_t block_idx = 0;
__thread uint3 threadIdx = {0, 0, 0};
__thread uint3 blockIdx = {0, 0, 0};
__thread uint3 blockDim = {1, 1, 1};
__thread uint3 gridDim = {1, 1, 1};

namespace ak {
namespace {
constexpr size_t kCoreStack = 512 << 10;
std::mutex idle_mutex;
std::condition_variable idle_changed;

void core_main(void* argument) {
  Core& c = *static_cast<Core*>(argument);
  worker->launch->spec.entry(worker->launch->spec.args);
  if (c.motion) motion_finish(c);
  block_until(
      [&c] {
        for (auto& q : c.queue)
          if (!q.empty()) return false;
        return true;
      },
      [] { return Waits{"its pipes to drain at the end of the kernel"}; });
  c.done = true;
  yield();
  __builtin_unreachable();
}

void resume(Core& c) {
  worker->current = &c;
  block_idx = c.block->index;
  blockIdx.x = c.block->index;
  gridDim.x = worker->launch->spec.grid;
  site = c.site;
  c.progress = false;
  c.polling = false;
  if (!c.started) {
    c.started = c.progress = true;
    acquire_stack(c.fiber, kCoreStack);
    prepare(c.fiber, core_main, &c);
  }
  record_begin(c);
  switch_fiber(worker->main, c.fiber);
  if (recording()) raw_flush();
  c.site = site;
  worker->current = nullptr;
  if (c.done) release_stack(c.fiber);
}

bool start_block(Launch& launch) {
  uint32_t limit = launch.spec.cores * (launch.spec.kind == uint32_t(Kind::Vector) ? 2 : 1);
  if (launch.active.fetch_add(1) >= limit) {
    launch.active.fetch_sub(1);
    return false;
  }
  uint32_t index = launch.next_block.fetch_add(1);
  if (index >= launch.spec.grid) {
    launch.active.fetch_sub(1);
    return false;
  }
  auto block = std::make_unique<Block>();
  block->index = index, block->launch = &launch;
  Kind kind = Kind(launch.spec.kind);
  auto add = [&](bool aic, uint32_t sub, uint32_t at) {
    auto core = std::make_unique<Core>();
    core->aic = aic, core->sub = sub, core->index = at, core->block = block.get();
    if (mutating) start_motion(*core);
    std::lock_guard<std::mutex> hold(launch.mutex);
    launch.by_kind[aic][at] = core.get();
    block->cores.push_back(std::move(core));
  };
  if (kind != Kind::Vector) add(true, 0, index);
  if (kind == Kind::Vector) add(false, 0, index);
  if (kind == Kind::Mixed)
    for (uint32_t s = 0; s < 2; ++s) add(false, s, 2 * index + s);
  uint32_t vector_cores = kind == Kind::Vector ? 1 : kind == Kind::Mixed ? 2 : 0;
  block->bank = control() ? blind_bank()
                          : acquire_bank(kind != Kind::Vector, vector_cores, launch.spec.poison);
  if (checking()) judge::on_block_start(*block);
  worker->blocks.push_back(std::move(block));
  return true;
}

// Runs every live core of this worker once. Returns whether anything moved.
bool sweep(Launch& launch, bool& polling) {
  bool moved = false;
  for (size_t b = 0; b < worker->blocks.size();) {
    Block& block = *worker->blocks[b];
    bool alive = false;
    for (auto& c : block.cores) {
      if (c->done) continue;
      if (launch.aborted) return false;
      resume(*c);
      moved |= c->progress || c->done;
      polling |= c->polling;
      alive |= !c->done;
    }
    if (alive) {
      ++b;
      continue;
    }
    {
      std::lock_guard<std::mutex> hold(launch.mutex);
      for (auto& c : block.cores) launch.by_kind[c->aic][c->index] = nullptr;
    }
    finish_block(block);
    release_bank(block.bank);
    worker->blocks.erase(worker->blocks.begin() + long(b));
    launch.active.fetch_sub(1), launch.finished.fetch_add(1);
    launch.epoch.fetch_add(1);
    moved = true;
  }
  return moved;
}

// Waits until another worker changes something this one could wait for. False: nobody can.
bool wait_for_others(Launch& launch, uint64_t seen) {
  std::unique_lock<std::mutex> hold(idle_mutex);
  if (launch.idle.fetch_add(1) + 1 >= launch.workers && launch.epoch == seen) {
    hold.unlock();
    report_deadlock(launch, "no core can make progress:");
    launch.idle.fetch_sub(1);
    idle_changed.notify_all();
    return false;
  }
  idle_changed.wait_for(hold, std::chrono::milliseconds(1),
                        [&] { return launch.epoch != seen || launch.aborted; });
  launch.idle.fetch_sub(1);
  return !launch.aborted;
}
}  // namespace

std::string Core::name() const {
  std::string n = aic ? "AIC" : "AIV" + std::to_string(sub);
  return "block " + std::to_string(block->index) + " " + n;
}
Core* Block::cube() const {
  for (auto& c : cores)
    if (c->aic) return c.get();
  return nullptr;
}
Core* Block::vector(uint32_t sub) const {
  for (auto& c : cores)
    if (!c->aic && c->sub == sub) return c.get();
  return nullptr;
}
uint32_t Launch::cores_of(bool aic) const {
  return spec.kind == uint32_t(Kind::Mixed) && !aic ? 2 * spec.grid : spec.grid;
}

void yield() { switch_fiber(core().fiber, worker->main); }

void run_worker(Launch& launch) {
  Worker self;
  self.launch = &launch;
  self.rng = launch.spec.replay * 0x9e3779b97f4a7c15ull + 1;
  worker = &self;
  std::unique_ptr<Recorder> recorder;
  if (launch.spec.trace >= 2 || launch.spec.flags & (kCheck | kJournal))
    self.recorder = (recorder = std::make_unique<Recorder>(launch.spec)).get();
  use_alternate_stack();
  auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(launch.spec.timeout_s);
  Deadline timer(launch);
  Spinning spinning(launch);
  if (sigsetjmp(self.escape, 1) == 0) {
    while (!launch.aborted) {
      uint64_t seen = launch.epoch;
      bool polling = false;
      if (self.blocks.empty() && !start_block(launch)) {
        if (launch.next_block >= launch.spec.grid) break;
        // Every core is taken by blocks of other workers: their end is what this one waits for.
        if (!wait_for_others(launch, seen)) break;
        continue;
      }
      bool moved = sweep(launch, polling);
      if (moved) {
        spinning.stop();
      } else if (start_block(launch)) {
        continue;
      } else if (polling) {
        spinning.turn();
        sched_yield();
      } else if (!wait_for_others(launch, seen)) {
        break;
      }
      if (launch.spec.timeout_s > 0 && std::chrono::steady_clock::now() > deadline)
        report_overdue(launch, moved);
    }
  }
  // After a failure the stacks of the remaining fibers are simply dropped back into the pool.
  for (auto& b : self.blocks) {
    std::lock_guard<std::mutex> hold(launch.mutex);
    for (auto& c : b->cores) {
      launch.by_kind[c->aic][c->index] = nullptr;
      abandon_threads(*c);
      if (c->fiber.stack) release_stack(c->fiber);
    }
    release_bank(b->bank);
  }
  self.blocks.clear();
  launch.workers.fetch_sub(1);
  launch.epoch.fetch_add(1);
  idle_changed.notify_all();
  worker = nullptr;
}

}  // namespace ak
