// Instructions of the resident kernels: copies a thread starts and waits for itself, barriers of a
// cluster in two halves, and the start of the next launch.
namespace ak {

AK_INLINE void copy16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
AK_INLINE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
AK_INLINE void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

AK_INLINE uint4 load16(const void* p) {
  uint4 x;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p));
  return x;
}

// All threads of all CTAs of a cluster; what a thread wrote before it arrives is seen after a wait.
AK_INLINE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
AK_INLINE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Lets the next launch begin: it waits for the end of this one before it reads or writes.
AK_INLINE void launch_next() { asm volatile("griddepcontrol.launch_dependents;"); }

AK_INLINE u32 warp_sum(u32 n) { return __reduce_add_sync(ALL_LANES, n); }

}  // namespace ak
