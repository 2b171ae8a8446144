// SIMT functions: launch, barriers, warp collectives, atomics. A warp has 32 threads.
#pragma once

#include <atomic>
#include <tuple>

#include "ak/helpers.h"

inline uint32_t laneid() { return ak::simt_lane(); }
inline void asc_syncthreads() { ak::simt_barrier(); }
inline void asc_threadfence() {
  AK_UNLESS_MUTATED("asc_threadfence");
  std::atomic_thread_fence(std::memory_order_seq_cst);
  [[maybe_unused]] uint8_t nothing = 0;
  AK_OUT("asc_threadfence", nothing, 1);
}

namespace ak {
template <class T>
constexpr Num num_of() {
  if constexpr (std::is_same_v<T, float>)
    return Num::F32;
  else if constexpr (std::is_same_v<T, half>)
    return Num::F16;
  else if constexpr (sizeof(T) == 8)
    return std::is_signed_v<T> ? Num::S64 : Num::U64;
  else
    return std::is_signed_v<T> ? Num::S32 : Num::U32;
}
template <class T>
inline T warp_op(Warp op, T v, int argument = 0) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "16/32/64-bit warp values");
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof(T));
  bits = simt_warp(op, num_of<T>(), bits, argument);
  std::memcpy(&v, &bits, sizeof(T));
  return v;
}

// The arguments live in the task until the vector pipe runs it; threads share them by address.
template <auto BODY, class... A>
struct SimtCall {
  std::tuple<A...> args;
  static void run(void* self) {
    // Each thread works on its own copies, as kernel parameters do.
    std::apply([](auto... a) { BODY(a...); }, static_cast<SimtCall*>(self)->args);
  }
};
}  // namespace ak

template <auto BODY, class... A>
inline void asc_vf_call(cce::dim3 dim, A... args) {
  uint32_t at = ak::site;
  ak::on_pipe(PIPE_V, [=, call = ak::SimtCall<BODY, A...>{{args...}}]() mutable {
    ak::simt_run(dim, &ak::SimtCall<BODY, A...>::run, &call, at);
  });
}

template <class T>
inline T asc_shfl_xor(T v, int mask) {
  return ak::warp_op(ak::Warp::ShflXor, v, mask);
}
template <class T>
inline T asc_reduce_add(T v) {
  return ak::warp_op(ak::Warp::Add, v);
}
template <class T>
inline T asc_reduce_max(T v) {
  return ak::warp_op(ak::Warp::Max, v);
}
template <class T>
inline T asc_reduce_min(T v) {
  return ak::warp_op(ak::Warp::Min, v);
}
inline uint32_t asc_ballot(bool predicate) {
  return uint32_t(ak::simt_warp(ak::Warp::Ballot, ak::Num::U32, predicate, 0));
}
inline uint32_t asc_activemask() {
  return uint32_t(ak::simt_warp(ak::Warp::Active, ak::Num::U32, 1, 0));
}

// Atomics return the old value. Cores on other host threads may touch the same global memory.
#define AK_SIMT_ATOMIC(NAME, EXPR) \
  template <class T, class V>      \
  inline T NAME(T* p, V value) {   \
    T v = T(value);                \
    ak::simt_atomic_lock();        \
    T old = *p;                    \
    *p = T(EXPR);                  \
    AK_OUT(#NAME, *p, sizeof(T));  \
    ak::simt_atomic_unlock();      \
    return old;                    \
  }
AK_SIMT_ATOMIC(asc_atomic_add, old + v)
AK_SIMT_ATOMIC(asc_atomic_max, old > v ? old : v)
AK_SIMT_ATOMIC(asc_atomic_min, old < v ? old : v)
#undef AK_SIMT_ATOMIC

namespace cooperative_groups {
struct coalesced_group {
  void sync() const { ak::simt_warp(ak::Warp::Sync, ak::Num::U32, 1, 0); }
};
inline coalesced_group coalesced_threads() { return {}; }
}  // namespace cooperative_groups
