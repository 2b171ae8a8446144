#include "stuck.h"

#include <cstdio>

#include "runtime/judge/finding.h"

namespace ak {
namespace {
constexpr int kShown = 6;  // cores a wait graph names
constexpr auto kPatience = std::chrono::milliseconds(800);

// Calls visit(core, pipe, line, what) for every wait; the launch is locked.
template <class VISIT>
void each_wait(Launch& launch, VISIT visit) {
  for (auto& kind : launch.by_kind)
    for (Core* c : kind) {
      if (!c || c->done) continue;
      if (c->waiting) visit(*c, int(PIPE_S), c->site, c->waiting());
      for (int p = 0; p < kPipes; ++p)
        if (!c->queue[p].empty())
          if (auto* w = dynamic_cast<WaitTask*>(c->queue[p].front().task.get()))
            visit(*c, p, c->queue[p].front().site, w->describe());
    }
}

std::string wait_graph(Launch& launch, bool for_good) {
  std::string text;
  int shown = 0;
  const Core* last = nullptr;
  each_wait(launch, [&](const Core& c, int pipe, uint32_t line, const Waits& what) {
    shown += &c != last;
    last = &c;
    if (shown > kShown) return;
    text += "\n  " + c.name() + (pipe == PIPE_S ? "" : std::string(" ") + pipe_name(pipe)) +
            " (line " + std::to_string(line) + ") waits for " + what.text;
  });
  if (shown > kShown) text += "\n  and " + std::to_string(shown - kShown) + " more cores";
  if (launch.next_block < launch.spec.grid)
    text += "\n  " + std::to_string(launch.spec.grid - launch.next_block) +
            " blocks have not started" +
            (for_good ? ": blocks that wait for each other must all fit on the cores" : "");
  return text;
}

// Each wait for a signal that does not come, as a finding.
void report_waits(Launch& launch) {
  each_wait(launch, [](const Core& c, int pipe, uint32_t line, const Waits& what) {
    if (!what.signalled) return;
    Finding f{};
    std::snprintf(f.code, sizeof f.code, "AK-SYNC-011");
    f.site = line, f.other_site = what.last;
    f.block = f.other_block = c.block->index;
    f.aic = f.other_aic = c.aic, f.sub = f.other_sub = uint8_t(c.sub);
    f.pipe = uint8_t(pipe), f.other_pipe = uint8_t(what.from), f.count = 1;
    std::snprintf(f.detail, sizeof f.detail, "waits for %s", what.text.c_str());
    report(f);
  });
}
}  // namespace

std::string busy_pipes(const Core& c) {
  std::string text;
  for (int p = 0; p < kPipes; ++p)
    if (!c.queue[p].empty())
      text += (text.empty() ? "" : ", ") + std::string(pipe_name(p)) + " at line " +
              std::to_string(c.queue[p].front().site);
  return text;
}
std::string signaller(const Core& c, Scope scope, uint32_t id) {
  switch (scope) {
    case Scope::Intra:
      return c.aic ? "AIV" + std::to_string(id / 16) : "AIC";
    case Scope::Subblock:
      return "both vector cores";
    case Scope::Block:
      return c.aic ? "both vector cores" : "AIC";
    case Scope::Inter:
      break;
  }
  Launch& launch = *worker->launch;
  auto& arrived = launch.inter[c.aic][id];
  size_t missing = arrived.empty() ? launch.cores_of(c.aic) : 0;
  std::string first;
  for (size_t i = 0; i < arrived.size(); ++i)
    if (arrived[i] == 0 && ++missing <= 3) first += (first.empty() ? "" : ", ") + std::to_string(i);
  return "all " + std::to_string(launch.cores_of(c.aic)) + (c.aic ? " cube" : " vector") +
         " cores, of which " + std::to_string(missing) + " have not arrived" +
         (first.empty() ? "" : " (" + first + (missing > 3 ? ", ...)" : ")"));
}

void report_deadlock(Launch& launch, const char* what) {
  std::lock_guard<std::mutex> hold(launch.mutex);
  if (launch.aborted.exchange(true)) return;
  if (launch.spec.flags & kCheck) report_waits(launch);
  std::snprintf(launch.report.code, sizeof launch.report.code, "AK-DEADLOCK-001");
  std::snprintf(launch.report.message, sizeof launch.report.message, "%s%s", what,
                wait_graph(launch, true).c_str());
}

void report_overdue(Launch& launch, bool moved) {
  std::lock_guard<std::mutex> hold(launch.mutex);
  if (launch.aborted.exchange(true)) return;
  std::snprintf(launch.report.code, sizeof launch.report.code, "AK-DEADLOCK-002");
  std::string graph = wait_graph(launch, false);
  std::snprintf(launch.report.message, sizeof launch.report.message,
                "the time limit of %g s passed, and cores %s; %u of %u blocks had ended%s%s",
                launch.spec.timeout_s,
                moved ? "still made progress" : "made no progress in their last turn",
                launch.finished.load(), launch.spec.grid, graph.empty() ? "" : ":", graph.c_str());
}

void Spinning::turn() {
  auto now = std::chrono::steady_clock::now();
  if (!on_) launch_.spinning.fetch_add(1);
  if (!on_ || launch_.epoch != seen_) since_ = now, seen_ = launch_.epoch;
  on_ = true;
  if (now - since_ > kPatience && launch_.idle + launch_.spinning >= launch_.workers)
    report_deadlock(launch_, "cores spin on global memory that nobody will write:");
}
void Spinning::stop() {
  if (on_) launch_.spinning.fetch_sub(1);
  on_ = false;
}

}  // namespace ak
