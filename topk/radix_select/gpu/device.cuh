// Instructions CUDA C++ has no words for, or has them under longer names.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace ak {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 ALL_LANES = 0xffffffffu;

#define AK_INLINE __device__ __forceinline__

AK_INLINE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// mbarriers: what a bulk copy completes on, and what hands its buffer back.
AK_INLINE void barrier_init(u64* b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count));
}
AK_INLINE void barrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
AK_INLINE void barrier_arrive(u64* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
AK_INLINE void barrier_arrive_expect(u64* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
}
// One look, which may wait a little; true once the phase of that parity is over.
AK_INLINE bool barrier_try(u64* b, u32 parity) {
  u32 done;
  asm volatile(
      "{\n .reg .pred done;\n"
      " mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n selp.u32 %0, 1, 0, done;\n}"
      : "=r"(done)
      : "r"(shared_address(b)), "r"(parity)
      : "memory");
  return done != 0;
}
AK_INLINE void barrier_wait(u64* b, u32 parity) {
  while (!barrier_try(b, parity)) {
  }
}
AK_INLINE void bulk_copy(void* to, const void* from, int bytes, u64* b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(b))
      : "memory");
}

// Between ordinary stores to a buffer and a bulk copy that may write there later.
AK_INLINE void before_bulk_copy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// A barrier of the first COUNT threads of a CTA; the producer's warp has no part in it.
template <int COUNT>
AK_INLINE void sync_first() {
  asm volatile("barrier.sync 1, %0;" ::"n"(COUNT) : "memory");
}
template <int COUNT>
AK_INLINE bool sync_first_and(bool mine) {
  u32 all;
  asm volatile(
      "{\n .reg .pred mine, all;\n setp.ne.u32 mine, %1, 0;\n"
      " barrier.red.and.pred all, 1, %2, mine;\n selp.u32 %0, 1, 0, all;\n}"
      : "=r"(all)
      : "r"((u32)mine), "n"(COUNT)
      : "memory");
  return all != 0;
}

// Clusters: shared memory of other CTAs, and a barrier that only some threads of each take part in.
template <class T>
AK_INLINE T* of_peer(T* mine, int rank) {
  u64 theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"((u64)mine), "r"(rank));
  return (T*)theirs;
}
AK_INLINE void cluster_start() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
AK_INLINE void peer_arrive(u64* b, int rank) {
  asm volatile(
      "{\n .reg .b32 theirs;\n mapa.shared::cluster.u32 theirs, %0, %1;\n"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [theirs];\n}" ::"r"(
          shared_address(b)),
      "r"(rank)
      : "memory");
}
AK_INLINE void peer_wait(u64* b, u32 parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      " @!done bra again;\n}" ::"r"(shared_address(b)),
      "r"(parity)
      : "memory");
}

AK_INLINE u32 above_bf16(u32 x, u32 t) {
  return __hgtu2_mask(*(__nv_bfloat162*)&x, *(__nv_bfloat162*)&t);
}
AK_INLINE u32 above_fp16(u32 x, u32 t) { return __hgtu2_mask(*(__half2*)&x, *(__half2*)&t); }

// A word in shared memory that others may change meanwhile.
AK_INLINE int hear(const int* p) { return *(const volatile int*)p; }
AK_INLINE void tell(int* p, int n) { *(volatile int*)p = n; }

AK_INLINE int lane_of() { return threadIdx.x & 31; }
AK_INLINE u32 lanes_below() { return (1u << (threadIdx.x & 31)) - 1; }

}  // namespace ak
