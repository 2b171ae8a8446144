// A GPU's words on a CPU, for CUDA text that TileLang generates: every thread is a fiber, fibers
// run in an order drawn from a seed and wait where threads wait for each other. One block, or one
// cluster of blocks, at a time.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#define __global__
#define __device__
#define __restrict__
#define __forceinline__ inline
#define __launch_bounds__(...)
using uint = unsigned int;
using ushort = unsigned short;
using uchar = unsigned char;
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
// A GPU's maximum of floats is the number where the other is a NaN.
template <>
inline float max(float a, float b) {
  return std::fmax(a, b);
}
template <>
inline float min(float a, float b) {
  return std::fmin(a, b);
}

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T x, y;
};
template <class T>
struct alignas(sizeof(T) * 4) Vector<T, 4> {
  T x, y, z, w;
};
using float2 = Vector<float, 2>;
using float4 = Vector<float, 4>;
using int2 = Vector<int, 2>;
using int4 = Vector<int, 4>;
using uint2 = Vector<uint, 2>;
using uint4 = Vector<uint, 4>;
using longlong2 = Vector<long long, 2>;
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
struct Index {
  int x, y = 0, z = 0;
};

inline void check(bool ok, const char* what) {
  if (!ok) fprintf(stderr, "cuda model: %s\n", what), abort();
}

struct Meeting {
  int here = 0;
  unsigned round = 0;
  uint64_t values[2][32] = {};
};
constexpr size_t stack_bytes = 65536;
struct Block {
  std::vector<Meeting> warps;
  Meeting meeting;
  std::vector<unsigned char> room;
  unsigned char* start() const {
    return (unsigned char*)(((uint64_t)room.data() + 1023) & ~1023ull);
  }
};
struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  int tid = 0, block = 0;
  unsigned arrived = 0;
  bool done = false;
};
inline ucontext_t scheduler;
inline Thread* now;
inline std::vector<Block> blocks;
inline Meeting cluster;
inline Index threadIdx, blockIdx, gridDim, blockDim;
inline int block_threads, first_block;
inline void resume(Thread* t) {
  now = t;
  threadIdx = {t->tid};
  blockIdx = {first_block + t->block};
}

// Shared memory by declaration: 256 KiB apart would be more than a block has.
inline void* shared_at(size_t offset) {
  check(offset < 228 * 1024, "shared memory of a block");
  return blocks[now->block].start() + offset;
}

inline void yield() {
  Thread* me = now;
  swapcontext(&me->context, &scheduler);
  resume(me);
}
inline const uint64_t* meet(Meeting& m, int count, int slot, uint64_t value) {
  const unsigned round = m.round;
  if (slot >= 0) m.values[round & 1][slot] = value;
  if (++m.here == count) {
    m.here = 0, ++m.round;
  } else {
    while (m.round == round) yield();
  }
  return m.values[round & 1];
}
template <class T>
const uint64_t* exchange(uint mask, T value) {
  // Lanes that ended take no part; the rest of a warp meets as a whole.
  check(mask == 0xffffffffu, "a collective of part of a warp");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return meet(blocks[now->block].warps[now->tid / 32], 32, now->tid % 32, bits);
}
template <class T>
T as(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}
inline void __syncwarp(uint mask = 0xffffffffu) { exchange(mask, 0); }
inline void __syncthreads() { meet(blocks[now->block].meeting, block_threads, -1, 0); }
inline void ak_cluster_arrive() {
  now->arrived = cluster.round;
  if (++cluster.here == block_threads * (int)blocks.size()) cluster.here = 0, ++cluster.round;
}
inline void ak_cluster_wait() {
  while (cluster.round == now->arrived) yield();
}
inline int ak_remote(const int* mine, int rank) {
  const auto offset = (const unsigned char*)mine - blocks[now->block].start();
  return *(const int*)(blocks[rank].start() + offset);
}
inline uint __ballot_sync(uint mask, bool mine) {
  const uint64_t* all = exchange(mask, (uint64_t)mine);
  uint votes = 0;
  for (int i = 0; i < 32; ++i) votes |= (uint)all[i] << i;
  return votes;
}
inline int __any_sync(uint mask, bool mine) { return __ballot_sync(mask, mine) != 0; }
inline int __all_sync(uint mask, bool mine) { return __ballot_sync(mask, mine) == 0xffffffffu; }
template <class T>
uint __match_any_sync(uint mask, T mine) {
  const uint64_t* all = exchange(mask, mine);
  uint same = 0;
  for (int i = 0; i < 32; ++i) same |= (uint)(as<T>(all[i]) == mine) << i;
  return same;
}
template <class T>
T __shfl_xor_sync(uint mask, T mine, int other, int = 32) {
  return as<T>(exchange(mask, mine)[(now->tid % 32) ^ other]);
}
template <class T>
T __shfl_sync(uint mask, T mine, int from, int width = 32) {
  const int lane = now->tid % 32;
  return as<T>(exchange(mask, mine)[(lane & ~(width - 1)) | (from & (width - 1))]);
}
inline void ak_take(void* to, const void* from) { memcpy(to, from, 16); }
inline void ak_put(void* to, const void* from) { memcpy(to, from, 16); }
inline void ak_fetch(const void*, int) {}
inline void ak_keep(const void*) {}
template <class T>
T __shfl_up_sync(uint mask, T mine, int by, int = 32) {
  const int lane = now->tid % 32;
  return as<T>(exchange(mask, mine)[lane < by ? lane : lane - by]);
}
template <class T, class F>
T reduce(uint mask, T mine, F both) {
  const uint64_t* all = exchange(mask, mine);
  T found = as<T>(all[0]);
  for (int i = 1; i < 32; ++i) found = both(found, as<T>(all[i]));
  return found;
}
template <class T>
T __reduce_add_sync(uint mask, T mine) {
  return reduce(mask, mine, [](T a, T b) { return T(a + b); });
}
template <class T>
T __reduce_max_sync(uint mask, T mine) {
  return reduce(mask, mine, [](T a, T b) { return max(a, b); });
}
template <class T>
T __reduce_min_sync(uint mask, T mine) {
  return reduce(mask, mine, [](T a, T b) { return min(a, b); });
}
template <class T, class U>
T atomicAdd(T* at, U more) {
  const T old = *at;
  *at += more;
  return old;
}
inline int __popc(uint x) { return __builtin_popcount(x); }
inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
inline int __ffs(uint x) { return __builtin_ffs((int)x); }
inline int __ffsll(uint64_t x) { return __builtin_ffsll((long long)x); }
inline int __ffs(uint64_t x) { return __builtin_ffsll((long long)x); }
inline uint __umulhi(uint a, uint b) { return (uint)((uint64_t)a * b >> 32); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float rsqrtf(float a) { return 1 / std::sqrt(a); }
template <class T>
inline void AtomicAdd(T* p, T v) {
  *p += v;
}
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
namespace tl {
inline void pdl_sync() {}
inline void pdl_trigger() {}
}  // namespace tl

template <class F>
void fiber() {
  F::body();
  now->done = true;
  swapcontext(&now->context, &scheduler);
}

// Runs F::body() on all threads of a grid, `together` blocks at a time.
template <class F>
void launch(int grid, int count, unsigned seed, int together) {
  std::mt19937 draw(seed);
  gridDim.x = grid, block_threads = count, blockDim.x = count;
  check(count % 32 == 0 && grid % together == 0, "whole warps, whole clusters");
  std::vector<std::unique_ptr<Thread>> threads(count * together);
  for (auto& t : threads) t = std::make_unique<Thread>();
  for (first_block = 0; first_block < grid; first_block += together) {
    blocks.assign(together, {});
    for (auto& b : blocks) {
      // What a block finds in shared memory is nothing to rely on: NaN, and large integers.
      b.room.assign(230 * 1024, 0xff);
      b.warps.assign(count / 32, {});
    }
    cluster = {};
    std::vector<int> order(threads.size());
    for (int t = 0; t < (int)threads.size(); ++t) {
      Thread& th = *threads[t];
      order[t] = t;
      th.tid = t % count, th.block = t / count, th.done = false;
      getcontext(&th.context);
      th.context.uc_stack.ss_sp = th.stack.get();
      th.context.uc_stack.ss_size = stack_bytes;
      th.context.uc_link = nullptr;
      makecontext(&th.context, fiber<F>, 0);
    }
    for (int left = 1, turns = 0; left; ++turns) {
      check(turns < 1000000, "threads wait for ever");
      std::shuffle(order.begin(), order.end(), draw);
      left = 0;
      for (int i : order) {
        Thread& th = *threads[i];
        if (th.done) continue;
        ++left;
        resume(&th);
        swapcontext(&scheduler, &th.context);
      }
    }
  }
}
