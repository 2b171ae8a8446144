#include "runtime/raw.h"

#include "runtime/judge/judge.h"
#include "runtime/judge/race.h"

namespace ak {

__thread uint32_t simt_thread = kNoThread, simt_phase = 0;

namespace {

// Accesses of one statement: rows of equal size, equally far apart, made by threads equally far
// apart.
struct Run {
  uint32_t number;  // runs become records in the order in which they began
  uint64_t pc;      // of the instruction, which tells two accesses of one line apart
  uint32_t site, rows, thread, thread_step;
  uint8_t write, size, space, atomic;
  uint64_t base, row_bytes;
  int64_t stride;
};
constexpr uint32_t kRuns = 32;  // statements open at a time

// What tells memories apart, kept flat because every access asks.
struct Raw {
  Core* core = nullptr;
  uint64_t ub = 0, ss = 0, gm_low = ~uint64_t(0), gm_high = 0;
  const Region* last = nullptr;
  uint32_t open = 0;  // bit i: runs[i] is in use
  uint32_t begun = 0;
  Run runs[kRuns];
};
thread_local Raw raw;

void put_out(Raw& r, uint32_t i) {
  static const Slot* const raw_slot = slot("raw");
  const Run& run = r.runs[i];
  r.open &= ~(1u << i);
  bool simt = run.thread != kNoThread;
  Core& c = *r.core;
  RecordHead head{raw_slot->index,
                  run.site,
                  c.block->index,
                  uint8_t(simt ? PIPE_V : PIPE_S),
                  c.aic,
                  uint8_t(c.sub),
                  1,
                  {simt ? run.thread : 0,
                   uint64_t(simt) | uint64_t(run.atomic) << 1 | uint64_t(run.thread_step) << 8},
                  c.running,
                  0};
  Access a = rows(Space(run.space), run.base, run.rows, run.row_bytes,
                  run.rows == 1 ? int64_t(run.row_bytes) : run.stride, run.write, c.sub);
  a.atomic = run.atomic;
  write_raw(*raw_slot, head, a);
}

void gather(Raw& r, uint64_t at, uint32_t size, bool write, Space space, uint64_t pc) {
  bool atomic = holds_atomic();
  uint32_t thread = simt_thread;
  if (thread != kNoThread && checking())
    judge::thread_access(*r.core, space, at, size, write, atomic, thread, simt_phase, site);
  uint32_t i = uint32_t(pc ^ pc >> 5) % kRuns;
  Run& run = r.runs[i];
  if (r.open >> i & 1) {
    if (run.site == site && run.write == write && run.size == size && run.space == uint8_t(space) &&
        run.atomic == atomic && (run.thread == kNoThread) == (thread == kNoThread)) {
      if (run.rows == 1) {
        if (thread == run.thread) {
          if (at == run.base + run.row_bytes) {
            run.row_bytes += size;
            return;
          }
          if (at >= run.base && at + size <= run.base + run.row_bytes) return;
        }
        if (run.row_bytes == size) {
          run.rows = 2;
          run.stride = int64_t(at - run.base), run.thread_step = thread - run.thread;
          return;
        }
      } else if (at == run.base + uint64_t(run.stride) * run.rows &&
                 thread == run.thread + run.thread_step * run.rows) {
        ++run.rows;
        return;
      } else if (at == run.base + uint64_t(run.stride) * (run.rows - 1) &&
                 thread == run.thread + run.thread_step * (run.rows - 1)) {
        return;
      }
    }
    put_out(r, i);
  }
  run = {r.begun++,      pc,     site, 1,    thread, 0, write, uint8_t(size),
         uint8_t(space), atomic, at,   size, 0};
  r.open |= 1u << i;
}

// Guard bytes count: what touches them is to be seen.
uint64_t first_byte(const Region& r) { return r.base - r.before; }
uint64_t size_of(const Region& r) { return r.before + r.bytes + r.after; }
const Region* region_of(Raw& r, uint64_t address) {
  if (r.last && address - first_byte(*r.last) < size_of(*r.last)) return r.last;
  const Spec& spec = worker->launch->spec;
  for (uint64_t i = 0; i < spec.region_count; ++i) {
    const Region& region = spec.regions[i];
    if (address - first_byte(region) < size_of(region)) return r.last = &region;
  }
  return nullptr;
}

inline void access(const void* p, uint32_t size, bool write, const void* pc) {
  Raw& r = raw;
  if (!r.core || r.core->in_simd) return;
  auto at = uint64_t(p);
  if (at - r.ub < kUbBytes)
    gather(r, at - r.ub, size, write, Space::UB, uint64_t(pc));
  else if (at - r.gm_low < r.gm_high - r.gm_low) {
    if (region_of(r, at)) gather(r, at, size, write, Space::GM, uint64_t(pc));
  } else if (at - r.ss < kSsBytes)
    gather(r, at - r.ss, size, write, Space::SS, uint64_t(pc));
}
}  // namespace

void raw_begin(Core& core) {
  Raw& r = raw;
  r.core = &core;
  r.ub = uint64_t(ub());
  r.ss = uint64_t(core.block->bank->ss);
  r.gm_low = ~uint64_t(0), r.gm_high = 0, r.last = nullptr;
  const Spec& spec = worker->launch->spec;
  for (uint64_t i = 0; i < spec.region_count; ++i) {
    const Region& region = spec.regions[i];
    r.gm_low = std::min(r.gm_low, first_byte(region));
    r.gm_high = std::max(r.gm_high, first_byte(region) + size_of(region));
  }
}

void raw_flush() {
  Raw& r = raw;
  while (r.open) {
    uint32_t first = uint32_t(__builtin_ctz(r.open));
    for (uint32_t left = r.open; left; left &= left - 1) {
      auto i = uint32_t(__builtin_ctz(left));
      if (r.runs[i].number - r.begun < r.runs[first].number - r.begun) first = i;
    }
    put_out(r, first);
  }
}

}  // namespace ak

// The names that a compiler gives to these hooks.
extern "C" {
#define AK_PC __builtin_return_address(0)
#define AK_HOOK(SIZE)                                                                              \
  AK_API void __tsan_read##SIZE(void* p) { ak::access(p, SIZE, false, AK_PC); }                    \
  AK_API void __tsan_write##SIZE(void* p) { ak::access(p, SIZE, true, AK_PC); }                    \
  AK_API void __tsan_unaligned_read##SIZE(void* p) { ak::access(p, SIZE, false, AK_PC); }          \
  AK_API void __tsan_unaligned_write##SIZE(void* p) { ak::access(p, SIZE, true, AK_PC); }          \
  AK_API void __tsan_volatile_read##SIZE(void* p) { ak::access(p, SIZE, false, AK_PC); }           \
  AK_API void __tsan_volatile_write##SIZE(void* p) { ak::access(p, SIZE, true, AK_PC); }           \
  AK_API void __tsan_unaligned_volatile_read##SIZE(void* p) { ak::access(p, SIZE, false, AK_PC); } \
  AK_API void __tsan_unaligned_volatile_write##SIZE(void* p) { ak::access(p, SIZE, true, AK_PC); }
AK_HOOK(1)
AK_HOOK(2)
AK_HOOK(4)
AK_HOOK(8)
AK_HOOK(16)
#undef AK_HOOK
// In pieces that a run's size can hold; structures and short arrays.
static void access_range(char* p, uint64_t bytes, bool write, const void* pc) {
  for (uint64_t i = 0; i < bytes; i += 64)
    ak::access(p + i, uint32_t(std::min<uint64_t>(64, bytes - i)), write, pc);
}
AK_API void __tsan_read_range(void* p, uint64_t bytes) {
  access_range(static_cast<char*>(p), bytes, false, AK_PC);
}
AK_API void __tsan_write_range(void* p, uint64_t bytes) {
  access_range(static_cast<char*>(p), bytes, true, AK_PC);
}
AK_API void __tsan_func_entry(void*) {}
AK_API void __tsan_func_exit() {}
AK_API void __tsan_init() {}
AK_API void __tsan_vptr_update(void**, void*) {}
AK_API void __tsan_vptr_read(void**) {}
// Atomic operations of the host's own headers, e.g. the guards of static variables.
AK_API void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
AK_API void __tsan_atomic_signal_fence(int) {}
#define AK_ATOMIC_HOOK(BITS)                                                                 \
  AK_API uint##BITS##_t __tsan_atomic##BITS##_load(const uint##BITS##_t* p, int) {           \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                             \
  }                                                                                          \
  AK_API void __tsan_atomic##BITS##_store(uint##BITS##_t* p, uint##BITS##_t v, int) {        \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                \
  }                                                                                          \
  AK_API uint##BITS##_t __tsan_atomic##BITS##_fetch_add(uint##BITS##_t* p, uint##BITS##_t v, \
                                                        int) {                               \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                       \
  }
AK_ATOMIC_HOOK(8)
AK_ATOMIC_HOOK(16)
AK_ATOMIC_HOOK(32)
AK_ATOMIC_HOOK(64)
#undef AK_ATOMIC_HOOK
}
