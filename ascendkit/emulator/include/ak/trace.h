// Hooks of the record stream. In a plain build they are empty; with AK_TRACE every instruction
// counts itself, reports its site and the memory it touches, and can be made to fail on purpose.
#pragma once

#include "ak/runtime.h"

namespace ak {
// One slot an instruction form. `fault` is the tests' proof that they look: a kind of corruption.
struct Slot {
  const char* name;
  uint64_t count;
  uint32_t fault, index;
  Slot* next;
  uint8_t action;  // what judges see in it (runtime/record.h)
};
AK_API Slot* slot(const char* name);
AK_API void corrupt(uint32_t kind, void* result, uint32_t bytes, uint32_t lane_bytes);
AK_API void trace_op(const Slot* s);
AK_API void trace_access(const void* p, uint32_t bytes, bool write);
// Mutants of this launch (runtime/mutate.h).
AK_API extern bool mutating;
AK_API bool mutated_away(const char* op);
AK_API void mutate_mask(const char* op, uint8_t* bits, uint32_t lane_bytes);
[[noreturn]] AK_API void misaligned(const char* name, const void* p, uint32_t align);

inline void check_align(const char* name, const void* p, uint32_t align) {
  if (__builtin_expect(reinterpret_cast<uintptr_t>(p) & (align - 1), 0)) misaligned(name, p, align);
}
}  // namespace ak

// Instructions are calls, not inlined loops: a kernel of hundreds of them still compiles in
// seconds.
#define AK_INSTR __attribute__((noinline)) inline

#if defined(AK_TRACE)
// At the end of an instruction: RESULT is what it produced (a register, or data about to be
// stored).
#define AK_OUT(NAME, RESULT, LANE_BYTES)                                    \
  do {                                                                      \
    static ::ak::Slot* const ak_slot = ::ak::slot(NAME);                    \
    ++ak_slot->count;                                                       \
    ::ak::trace_op(ak_slot);                                                \
    if (__builtin_expect(ak_slot->fault != 0, 0))                           \
      ::ak::corrupt(ak_slot->fault, &(RESULT), sizeof(RESULT), LANE_BYTES); \
  } while (0)
// At the start of a store: names the value that goes to memory `stored`.
#define AK_STORED(NAME, VALUE, LANE_BYTES) \
  auto stored = VALUE;                     \
  AK_OUT(NAME, stored, LANE_BYTES)
#define AK_TOUCH(P, BYTES, WRITE) ::ak::trace_access(P, BYTES, WRITE)
// A mutant leaves the instruction out, or moves the end of a predicate.
#define AK_UNLESS_MUTATED(NAME) \
  if (__builtin_expect(::ak::mutating, 0) && ::ak::mutated_away(NAME)) return
#define AK_MUTATE_MASK(NAME, MASK, LANE_BYTES) \
  if (__builtin_expect(::ak::mutating, 0)) ::ak::mutate_mask(NAME, (MASK).bit, LANE_BYTES)
#else
#define AK_STORED(NAME, VALUE, LANE_BYTES) const auto& stored = VALUE
#define AK_OUT(NAME, RESULT, LANE_BYTES) ((void)0)
#define AK_TOUCH(P, BYTES, WRITE) ((void)0)
#define AK_UNLESS_MUTATED(NAME) ((void)0)
#define AK_MUTATE_MASK(NAME, MASK, LANE_BYTES) ((void)0)
#endif
