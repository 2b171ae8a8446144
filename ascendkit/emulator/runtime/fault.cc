// Failure: a diagnosed error or a memory fault ends the launch and becomes a Python exception.
#include <signal.h>
#include <stdarg.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>

#include "state.h"

namespace ak {
namespace {
struct sigaction previous[64];
constexpr const char* kNeedsData =
    "scalar code reads data: its control flow may depend on values, which mode control has not";

const char* describe(int signal, uint64_t address, char* text, size_t size) {
  if (signal == SIGFPE) return "integer division by zero";
  Core& c = core();
  for (uint32_t s = 0; s < 2; ++s) {
    uint64_t ub_base = uint64_t(c.block->bank->ub[s]);
    if (address + kGuardBytes >= ub_base && address < ub_base + kUbBytes + kGuardBytes) {
      std::snprintf(text, size, "access outside UB: offset %lld of %llu bytes",
                    (long long)(address - ub_base), (unsigned long long)kUbBytes);
      return text;
    }
  }
  uint64_t ss = uint64_t(c.block->bank->ss);
  if (address + kGuardBytes >= ss && address < ss + kSsBytes + kGuardBytes) {
    std::snprintf(text, size, "access outside the SS buffer: offset %lld of %llu bytes",
                  (long long)(address - ss), (unsigned long long)kSsBytes);
    return text;
  }
  if (c.fiber.stack && address >= uint64_t(c.fiber.stack) - 4096 &&
      address < uint64_t(c.fiber.stack))
    return "the kernel's scalar stack overflowed (512 KiB)";
  if (address < (1 << 20)) {
    std::snprintf(text, size,
                  "access through an on-chip offset used as an address (0x%llx): only UB "
                  "is addressable by scalar and SIMT code",
                  (unsigned long long)address);
    return text;
  }
  std::snprintf(text, size, "access to unmapped memory at 0x%llx", (unsigned long long)address);
  return text;
}

bool on_chip(uint64_t address) {
  uint64_t ss = uint64_t(core().block->bank->ss);
  if (address >= ss && address < ss + kSsBytes) return true;
  for (const uint8_t* u : core().block->bank->ub)
    if (address >= uint64_t(u) && address < uint64_t(u) + kUbBytes) return true;
  return false;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (worker && worker->current) {
    char text[256];
    uint64_t address = signal == SIGFPE ? 0 : uint64_t(info->si_addr);
    if (signal != SIGFPE && control() && on_chip(address))
      leave("AK-CONTROL-001", kNeedsData, address, program_counter(context));
    const char* message = describe(signal, address, text, sizeof text);
    leave(signal == SIGFPE ? "AK-ARITH-001" : "AK-BOUNDS-001", message, address,
          program_counter(context));
  }
  // Not ours: hand it to whoever was there before, but not in a circle.
  static volatile sig_atomic_t handing_on = 0;
  struct sigaction& old = previous[signal];
  bool again = handing_on;
  handing_on = 1;
  if (!again && old.sa_flags & SA_SIGINFO) {
    old.sa_sigaction(signal, info, context);
  } else if (!again && old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
    old.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);
    raise(signal);
  }
  handing_on = 0;
}
}  // namespace

void leave(const char* code, const char* message, uint64_t address, uint64_t pc) {
  Launch& launch = *worker->launch;
  Core& c = core();
  bool first = !launch.aborted.exchange(true);
  if (first) {
    Report& r = launch.report;
    std::snprintf(r.code, sizeof r.code, "%s", code);
    std::snprintf(r.message, sizeof r.message, "%s", message);
    r.site = site, r.block = c.block->index, r.sub = c.sub, r.aic = c.aic;
    r.address = address, r.pc = pc;
  }
  release_atomics();
  siglongjmp(worker->escape, 1);
}

uint64_t program_counter(void* context) {
  auto* uc = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  return uint64_t(uc->uc_mcontext.gregs[REG_RIP]);
#else
  return uint64_t(uc->uc_mcontext.pc);
#endif
}

void fail(const char* code, const char* format, ...) {
  char text[1900];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  leave(code, text, 0, 0);
}

void needs_data(const char* what) { fail("AK-CONTROL-001", "%s: %s", what, kNeedsData); }

void assert_failed(const char* condition) {
  fail("AK-ASSERT-001", "device assertion failed: %s", condition);
}

void misaligned(const char* name, const void* p, uint32_t align) {
  uint64_t base = uint64_t(ub()), at = uint64_t(p);
  fail("AK-ALIGN-001", "%s at UB offset %lld needs %u-byte alignment", name, (long long)(at - base),
       align);
}

// At every launch: Python's faulthandler, which a test runner switches on and off, may have taken
// the place of ours since the last one.
void install_signal_handlers() {
  static std::mutex mutex;
  std::lock_guard<std::mutex> hold(mutex);
  struct sigaction action = {}, now = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE}) {
    sigaction(s, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal) continue;
    previous[s] = now;
    sigaction(s, &action, nullptr);
  }
}

void use_alternate_stack() {
  static thread_local std::unique_ptr<char[]> memory(new char[64 << 10]);
  stack_t stack = {};
  stack.ss_sp = memory.get();
  stack.ss_size = 64 << 10;
  sigaltstack(&stack, nullptr);
}

// ---- bounds ------------------------------------------------------------------------------------

void check_gm(const char* op, const void* p, uint64_t bytes) {
  const Spec& spec = worker->launch->spec;
  uint64_t at = uint64_t(p);
  const Region* nearest = nullptr;
  uint64_t distance = ~uint64_t(0);
  for (uint64_t i = 0; i < spec.region_count; ++i) {
    const Region& r = spec.regions[i];
    if (at >= r.base && at + bytes <= r.base + r.bytes) return;
    uint64_t d = at < r.base ? r.base - at : at < r.base + r.bytes ? 0 : at - (r.base + r.bytes);
    if (d < distance) nearest = &r, distance = d;
  }
  if (spec.flags & kIndirect && distance != 0) return;  // the access itself decides
  if (!nearest) fail("AK-BOUNDS-002", "%s touches global memory, but the kernel has no tensor", op);
  fail("AK-BOUNDS-002", "%s touches global memory outside tensor %s: bytes [%lld, %lld) of %llu",
       op, nearest->name, (long long)(at - nearest->base), (long long)(at - nearest->base + bytes),
       (unsigned long long)nearest->bytes);
}

void check_ub(const char* op, const void* p, uint64_t bytes, uint32_t align) {
  uint64_t offset = uint64_t(p) - uint64_t(ub());
  if (offset > kUbBytes || bytes > kUbBytes - offset)
    fail("AK-BOUNDS-003", "%s touches UB bytes [%lld, %lld) of %llu", op, (long long)offset,
         (long long)(offset + bytes), (unsigned long long)kUbBytes);
  if (offset & (align - 1))
    fail("AK-ALIGN-001", "%s at UB offset %llu needs %u-byte alignment", op,
         (unsigned long long)offset, align);
}

uint64_t check_local(const char* op, Space space, uint64_t offset, uint64_t bytes, uint32_t align) {
  if (offset > capacity(space) || bytes > capacity(space) - offset)
    fail("AK-BOUNDS-004", "%s touches %s bytes [%lld, %lld) of %llu", op, space_name(space),
         (long long)offset, (long long)(offset + bytes), (unsigned long long)capacity(space));
  if (offset & (align - 1))
    fail("AK-ALIGN-001", "%s at %s offset %llu needs %u-byte alignment", op, space_name(space),
         (unsigned long long)offset, align);
  return offset;
}

}  // namespace ak
