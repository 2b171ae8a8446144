// A GPU's words on a CPU, for the CUDA files of topk: every thread is a fiber, fibers run in random
// order and yield where threads wait for each other. Replaces device.cuh.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __forceinline__ inline

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __uint_as_float(unsigned x) {
  float f;
  memcpy(&f, &x, 4);
  return f;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
template <class T, class U>
T atomicAdd(T* p, U n) {
  T old = *p;
  *p += n;
  return old;
}

namespace ak {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
constexpr u32 ALL_LANES = 0xffffffffu;
#define AK_INLINE inline

struct Index {
  int x;
};
// Where threads meet: the last one to come lets all go.
struct Meeting {
  int here = 0;
  unsigned round = 0;
  u32 values[2][32] = {};
  bool any[2] = {};
};
struct Arrivals {
  int count = 0, left = 0, bytes = 0;
  u32 phase = 0;
};
struct Block {
  std::vector<unsigned char> room;
  unsigned char* shared = nullptr;
  Meeting consumers;
  std::vector<Meeting> warps;
};
struct Thread {
  ucontext_t context;
  std::vector<char> stack;
  int tid, block;
  bool done = false;
};
struct Copy {
  void* to;
  const void* from;
  int bytes;
  u64* barrier;
};

inline ucontext_t scheduler;
inline std::vector<std::unique_ptr<Thread>> threads;
inline std::vector<Block> blocks;
inline std::map<u64*, Arrivals> arrivals;
inline std::vector<Copy> copies;
inline std::function<void()> body;
inline Thread* now;
inline int first_block, cluster_met;
inline Index threadIdx, blockIdx, gridDim;
inline long long read_low, read_high;  // what a bulk copy may read

inline void yield() {
  Thread* me = now;
  swapcontext(&me->context, &scheduler);
  now = me;
  threadIdx.x = me->tid;
  blockIdx.x = first_block + me->block;
}
template <class F>
void wait_until(F ready) {
  while (!ready()) yield();
}
inline void check(bool ok, const char* what) {
  if (!ok) fprintf(stderr, "gpu model: %s\n", what), abort();
}

inline void arrive(u64* b, int bytes) {
  Arrivals& a = arrivals.at(b);
  a.bytes += bytes;
  --a.left;
  check(a.left >= 0, "more arrivals than an mbarrier expects");
  if (!a.left && !a.bytes) a.left = a.count, ++a.phase;
}
inline void barrier_init(u64* b, int count) { arrivals[b] = {count, count, 0, 0}; }
inline void barrier_init_done() {}
inline void before_bulk_copy() {}
inline void barrier_arrive(u64* b) { arrive(b, 0); }
inline void barrier_arrive_expect(u64* b, int bytes) { arrive(b, bytes); }
inline bool barrier_try(u64* b, u32 parity) {
  yield();
  return (arrivals.at(b).phase & 1) != parity;
}
inline void barrier_wait(u64* b, u32 parity) {
  wait_until([&] { return (arrivals.at(b).phase & 1) != parity; });
}
inline void bulk_copy(void* to, const void* from, int bytes, u64* b) {
  check((uint64_t)to % 16 == 0 && (uint64_t)from % 16 == 0 && bytes % 16 == 0,
        "bulk copy alignment");
  check((long long)from >= read_low && (long long)from + bytes <= read_high,
        "bulk copy out of bounds");
  copies.push_back({to, from, bytes, b});
}
inline void finish_copy(size_t i) {
  const Copy c = copies[i];
  copies.erase(copies.begin() + i);
  memcpy(c.to, c.from, c.bytes);
  Arrivals& a = arrivals.at(c.barrier);
  a.bytes -= c.bytes;
  if (!a.left && !a.bytes) a.left = a.count, ++a.phase;
}

inline bool meet(Meeting& m, int count, bool mine) {
  const unsigned round = m.round;
  if (!m.here) m.any[round & 1] = false;
  m.any[round & 1] |= mine;
  if (++m.here == count) {
    m.here = 0, ++m.round;
  } else {
    wait_until([&] { return m.round != round; });
  }
  return m.any[round & 1];
}
template <int COUNT>
void sync_first() {
  meet(blocks[now->block].consumers, COUNT, false);
}
template <int COUNT>
bool sync_first_and(bool mine) {
  return !meet(blocks[now->block].consumers, COUNT, !mine);
}
inline const u32* exchange(u32 mine) {
  Meeting& m = blocks[now->block].warps[now->tid / 32];
  const unsigned round = m.round;
  m.values[round & 1][now->tid % 32] = mine;
  meet(m, 32, false);
  return m.values[round & 1];
}
inline void __syncwarp() { exchange(0); }
inline u32 __ballot_sync(u32, bool mine) {
  const u32* all = exchange(mine);
  u32 votes = 0;
  for (int i = 0; i < 32; ++i) votes |= all[i] << i;
  return votes;
}
inline bool __any_sync(u32, bool mine) { return __ballot_sync(0, mine) != 0; }
inline bool __all_sync(u32, bool mine) { return __ballot_sync(0, mine) == ALL_LANES; }
inline int __shfl_sync(u32, u32 mine, int from) { return (int)exchange(mine)[from & 31]; }
inline u32 __shfl_up_sync(u32, u32 mine, int d) {
  const int lane = now->tid % 32;
  const u32* all = exchange(mine);
  return lane >= d ? all[lane - d] : mine;
}

template <class T>
T* of_peer(T* mine, int rank) {
  const long long at = (unsigned char*)mine - blocks[now->block].shared;
  check(at >= 0 && at < (long long)blocks[0].room.size(), "not in shared memory");
  return (T*)(blocks[rank].shared + at);
}
inline void cluster_start() {
  ++cluster_met;
  wait_until([] { return cluster_met == (int)threads.size(); });
}
inline void __syncthreads() { cluster_start(); }
inline void peer_arrive(u64* b, int rank) { arrive(of_peer(b, rank), 0); }
inline void peer_wait(u64* b, u32 parity) { barrier_wait(b, parity); }

inline bool above16(float x, float t) { return !(x <= t); }
inline u32 above_bf16(u32 x, u32 t) {
  const u32 high = above16(__uint_as_float(x & 0xffff0000u), __uint_as_float(t & 0xffff0000u));
  const u32 low = above16(__uint_as_float(x << 16), __uint_as_float(t << 16));
  return (high ? 0xffff0000u : 0) | (low ? 0xffffu : 0);
}
inline float half(u32 x) {
  const u32 e = x >> 10 & 31, f = x & 1023;
  const float v = e == 31  ? (f ? NAN : INFINITY)
                  : e == 0 ? std::ldexp((float)f, -24)
                           : std::ldexp((float)(f | 1024), (int)e - 25);
  return x & 0x8000 ? -v : v;
}
inline u32 above_fp16(u32 x, u32 t) {
  return (above16(half(x >> 16), half(t >> 16)) ? 0xffff0000u : 0) |
         (above16(half(x & 0xffff), half(t & 0xffff)) ? 0xffffu : 0);
}
inline int hear(const int* p) { return *p; }
inline void tell(int* p, int n) { *p = n; }
inline int lane_of() { return threadIdx.x & 31; }
inline u32 lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

inline void enter() {
  body();
  now->done = true;
  swapcontext(&now->context, &scheduler);
}

// Runs `what` on all threads of a grid, a cluster after another.
template <class F>
void launch(int grid, int cluster, int count, size_t bytes, unsigned seed, F what) {
  std::mt19937 draw(seed);
  gridDim.x = grid;
  for (first_block = 0; first_block < grid; first_block += cluster) {
    threads.clear(), arrivals.clear(), copies.clear();
    blocks.assign(cluster, {});
    cluster_met = 0;
    for (int c = 0; c < cluster; ++c) {
      blocks[c].room.assign(bytes + 128, 0xa5);
      blocks[c].shared = (unsigned char*)(((uint64_t)blocks[c].room.data() + 127) & ~127ull);
      blocks[c].warps.resize((count + 31) / 32);
      for (int t = 0; t < count; ++t) {
        threads.push_back(std::make_unique<Thread>());
        Thread& th = *threads.back();
        th.stack.resize(32768);
        th.tid = t, th.block = c;
        getcontext(&th.context);
        th.context.uc_stack.ss_sp = th.stack.data();
        th.context.uc_stack.ss_size = th.stack.size();
        th.context.uc_link = nullptr;
        makecontext(&th.context, enter, 0);
      }
    }
    body = [&] { what(blocks[now->block].shared); };
    std::vector<int> order(threads.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = (int)i;
    for (int idle = 0, left = (int)threads.size(); left;) {
      // Whole warps change places; threads of a warp run in a random rotation.
      const int begin = (int)(draw() % order.size());
      left = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        Thread& th = *threads[order[(begin + i * 37) % order.size()]];
        if (th.done) continue;
        ++left;
        now = &th;
        threadIdx.x = th.tid;
        blockIdx.x = first_block + th.block;
        swapcontext(&scheduler, &th.context);
      }
      if (!copies.empty() && draw() % 2) finish_copy(draw() % copies.size());
      check(++idle < 200000, "threads wait for ever");
    }
    check(copies.empty(), "copies left at the end");
  }
}

}  // namespace ak
