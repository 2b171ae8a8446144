// A fiber: a stack and a saved stack pointer. Switching saves the callee-saved registers only.
#pragma once

#include <cstddef>

namespace ak {

struct Fiber {
  void* sp = nullptr;
  char* stack = nullptr;
  size_t bytes = 0;
};

// Prepares `fiber` so that the next switch to it calls entry(argument), which must not return.
void prepare(Fiber& fiber, void (*entry)(void*), void* argument);
// Stacks come from a per-thread pool, have a guard page below, and are given back with release.
void acquire_stack(Fiber& fiber, size_t bytes);
void release_stack(Fiber& fiber);

extern "C" void ak_switch(void** save_sp, void* load_sp);
inline void switch_fiber(Fiber& from, Fiber& to) { ak_switch(&from.sp, to.sp); }

}  // namespace ak
