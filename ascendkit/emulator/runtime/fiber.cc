#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <vector>

#if defined(__x86_64__)
asm(R"(
.text
.globl ak_switch
.type ak_switch,@function
ak_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.type ak_fiber_start,@function
ak_fiber_start:
  movq %r12, %rdi
  callq *%r13
  ud2
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl ak_switch
.type ak_switch,%function
ak_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.type ak_fiber_start,%function
ak_fiber_start:
  mov x0, x19
  blr x20
  brk #0
)");
#else
#error "the emulator switches stacks on x86-64 and AArch64 only"
#endif

extern "C" void ak_fiber_start();

namespace ak {

void prepare(Fiber& fiber, void (*entry)(void*), void* argument) {
  auto top = reinterpret_cast<uintptr_t>(fiber.stack + fiber.bytes) & ~uintptr_t(63);
#if defined(__x86_64__)
  auto** p = reinterpret_cast<void**>(top);
  *--p = nullptr;
  *--p = nullptr;  // the start routine calls, so the stack is 16-byte aligned before it
  *--p = reinterpret_cast<void*>(ak_fiber_start);
  *--p = nullptr;                         // rbp
  *--p = nullptr;                         // rbx
  *--p = argument;                        // r12
  *--p = reinterpret_cast<void*>(entry);  // r13
  *--p = nullptr;                         // r14
  *--p = nullptr;                         // r15
#else
  auto** p = reinterpret_cast<void**>(top) - 20;
  for (int i = 0; i < 20; ++i) p[i] = nullptr;
  p[0] = argument;                                  // x19
  p[1] = reinterpret_cast<void*>(entry);            // x20
  p[11] = reinterpret_cast<void*>(ak_fiber_start);  // x30
#endif
  fiber.sp = p;
}

namespace {
constexpr size_t kGuard = 4096;
struct StackPool {
  std::vector<Fiber> free;
  ~StackPool() {
    for (auto& f : free) munmap(f.stack - kGuard, f.bytes + kGuard);
  }
};
thread_local StackPool stack_pool;
}  // namespace

void acquire_stack(Fiber& fiber, size_t bytes) {
  for (size_t i = stack_pool.free.size(); i-- > 0;)
    if (stack_pool.free[i].bytes == bytes) {
      fiber = stack_pool.free[i];
      stack_pool.free.erase(stack_pool.free.begin() + long(i));
      return;
    }
  void* p = mmap(nullptr, bytes + kGuard, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, kGuard, PROT_NONE);
  fiber.stack = static_cast<char*>(p) + kGuard;
  fiber.bytes = bytes;
}

void release_stack(Fiber& fiber) {
  stack_pool.free.push_back(fiber);
  fiber = {};
}

}  // namespace ak
