// The time limit of a launch, for code that does not come back to the scheduler: a timer a worker.
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "state.h"

namespace ak {
namespace {
constexpr long kRepeatMs = 10;
int overdue_signal() { return SIGRTMIN + 4; }

// Only the kernel's own code may be left at any instruction: it holds no lock and allocates
// nothing. Elsewhere the next tick decides.
void on_overdue(int, siginfo_t*, void* context) {
  if (!worker || !worker->current) return;
  uint64_t pc = program_counter(context);
  Launch& launch = *worker->launch;
  if (pc < launch.text_begin || pc >= launch.text_end) return;
  // The first tick looks, the next one knows whether the core has done anything since.
  const Core& c = core();
  if (worker->overdue != &c) {
    worker->overdue = &c, worker->overdue_issued = c.issued;
    return;
  }
  char text[256], since[64];
  uint32_t issued = c.issued - worker->overdue_issued;
  std::snprintf(since, sizeof since,
                issued ? "%u instructions: it made progress" : "no instruction", issued);
  std::snprintf(
      text, sizeof text,
      "the time limit of %g s passed and block %u %s had not come back; in its last %ld ms "
      "it issued %s; %u of %u blocks had ended",
      launch.spec.timeout_s, c.block->index,
      c.aic   ? "AIC"
      : c.sub ? "AIV1"
              : "AIV0",
      kRepeatMs, since, launch.finished.load(), launch.spec.grid);
  leave("AK-DEADLOCK-002", text, 0, pc);
}

int find_text(dl_phdr_info* info, size_t, void* data) {
  Launch& launch = *static_cast<Launch*>(data);
  uint64_t entry = uint64_t(reinterpret_cast<uintptr_t>(launch.spec.entry));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    uint64_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) || entry < begin || entry >= end) continue;
    launch.text_begin = begin, launch.text_end = end;
    return 1;
  }
  return 0;
}
}  // namespace

void prepare_deadline(Launch& launch) {
  if (launch.spec.timeout_s <= 0) return;
  dl_iterate_phdr(find_text, &launch);
  struct sigaction action = {};
  action.sa_sigaction = on_overdue;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(overdue_signal(), &action, nullptr);
}

Deadline::Deadline(const Launch& launch) {
  if (launch.spec.timeout_s <= 0) return;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = overdue_signal();
#if defined(sigev_notify_thread_id)
  event.sigev_notify_thread_id = pid_t(syscall(SYS_gettid));
#else
  event._sigev_un._tid = pid_t(syscall(SYS_gettid));
#endif
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  armed = true;
  double limit = launch.spec.timeout_s;
  itimerspec at = {};
  at.it_value.tv_sec = time_t(limit);
  at.it_value.tv_nsec = long((limit - double(time_t(limit))) * 1e9) + 1;
  at.it_interval.tv_nsec = kRepeatMs * 1'000'000;
  timer_settime(timer, 0, &at, nullptr);
}
Deadline::~Deadline() {
  if (armed) timer_delete(timer);
}

}  // namespace ak
