"""Clusters of thread blocks: what TileLang 0.1.15 starts, but has no words for inside."""

CLUSTER = 8
"""Blocks of a cluster; more are not portable."""
SOURCE = r"""
__device__ __forceinline__ void ak_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ __forceinline__ void ak_cluster_wait() {
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ int ak_remote(const int* mine, int rank) {
  unsigned int here = (unsigned int)__cvta_generic_to_shared(mine), there;
  int value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
  return value;
}
"""
"""For ``T.import_source``. Every thread of a block arrives and waits."""
ARRIVE, WAIT, REMOTE = "ak_cluster_arrive", "ak_cluster_wait", "ak_remote"
"""Names in it: the halves of the cluster's barrier; an int32 of another block's shared memory."""
