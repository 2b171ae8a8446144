// The resident kernels on the model of gpu_model.h, with small CTAs; see gpu_resident.py.
#include "gpu_model.h"

struct uint2 {
  unsigned x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

namespace ak {

// Copies of a thread happen where it waits for them, as late as they may.
struct Pending {
  std::vector<std::vector<Copy>> groups{1};
};
inline std::map<Thread*, Pending> pending;
inline void copy16(void* to, const void* from) {
  check((uint64_t)to % 16 == 0 && (uint64_t)from % 16 == 0, "copy alignment");
  check((long long)from >= read_low && (long long)from + 16 <= read_high, "copy out of bounds");
  pending[now].groups.back().push_back({to, from, 16, nullptr});
}
inline uint4 load16(const void* from) {
  check((uint64_t)from % 16 == 0, "load alignment");
  check((long long)from >= read_low && (long long)from + 16 <= read_high, "load out of bounds");
  return *(const uint4*)from;
}
inline void copy_commit() { pending[now].groups.emplace_back(); }
template <int LEFT>
void copy_wait() {
  auto& groups = pending[now].groups;
  while (groups.size() > LEFT + 1) {
    for (const Copy& c : groups[0]) memcpy(c.to, c.from, 16);
    groups.erase(groups.begin());
  }
}

struct Halves {
  int arrived = 0;
  unsigned round = 0;
};
inline Halves halves;
inline std::map<Thread*, unsigned> waits_for;
inline void cluster_arrive() {
  check(!waits_for.count(now), "arrives twice at a cluster's barrier");
  waits_for[now] = halves.round;
  if (++halves.arrived == (int)threads.size()) halves.arrived = 0, ++halves.round;
}
inline void cluster_wait() {
  check(waits_for.count(now), "waits for a cluster without having arrived");
  const unsigned round = waits_for[now];
  wait_until([&] { return halves.round != round; });
  waits_for.erase(now);
}
inline void launch_next() {}
inline u32 warp_sum(u32 n) {
  const u32* all = exchange(n);
  u32 sum = 0;
  for (int i = 0; i < 32; ++i) sum += all[i];
  return sum;
}

}  // namespace ak

// clang-format off
#include "keys.cuh"
#include "row.cuh"
#include "output.cuh"
#include "resident_layout.cuh"
#include "resident_load.cuh"
#include "resident_pivot.cuh"
#include "resident.cuh"
// clang-format on

using namespace ak;

template <class F, int CLUSTER>
void run(const Arguments& a, unsigned seed) {
  using P = Piece<F, 64, 5120, 1024, CLUSTER, CLUSTER == 1 ? 9 : 11>;
  for (int row = 0; row < a.rows; ++row) {
    pending.clear(), waits_for.clear();
    halves = {};
    // One row a launch: the state above is of one cluster.
    Arguments one = a;
    launch(CLUSTER, CLUSTER, P::THREADS, sizeof(Resident<P>), seed + row, [&](void* shared) {
      blockIdx.x = row * CLUSTER + now->block;
      select_resident<P>(shared, one);
    });
    check(waits_for.empty(), "leaves between the halves of a cluster's barrier");
  }
}

extern "C" void select_on_cpu(const Arguments* a, int format, int cluster, int, unsigned seed,
                              long long low, long long high) {
  read_low = low, read_high = high;
  if (format == 0) cluster == 1 ? run<Bf16, 1>(*a, seed) : run<Bf16, 4>(*a, seed);
  if (format == 1) cluster == 1 ? run<Fp16, 1>(*a, seed) : run<Fp16, 4>(*a, seed);
  if (format == 2) cluster == 1 ? run<Fp32, 1>(*a, seed) : run<Fp32, 4>(*a, seed);
}
