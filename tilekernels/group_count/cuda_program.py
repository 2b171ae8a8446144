"""Histograms on NVIDIA GPUs, in TileLang: counters in shared memory, added up in a fixed place.

*One cluster.* Eight blocks count their share in shared memory; after a barrier of the cluster every
block adds up a slice of the counters from the shared memory of all eight. One launch, nothing to
zero in global memory, no atomic outside a block.

*Two launches*, for more indices than eight SMs read in time: a histogram a block into global
memory, then their sums.

Counts are integers, so that nothing depends on an order; ``as_float`` turns them into frequencies,
count * num_groups / divisor, at the very end.
"""

from typing import Any

from tilekernels.cluster import ARRIVE, CLUSTER, REMOTE, SOURCE, WAIT

THREADS = 512
SUM_GROUPS = 32
"""Groups a block adds up."""
SUM_LANES = 8
"""Threads that share the parts of a group."""
UNROLL = 4
"""Loads in flight a thread."""


def count_in_cluster(num_groups: int, width: int, as_float: bool) -> Any:
    """The program of one cluster: int64 (n,), divisor -> int32 or float32 (num_groups,)."""
    from tilelang import language as T

    G, dtype = num_groups, "float32" if as_float else "int32"
    N = T.dynamic("num_indices")
    count, store = _count(G, width), _store(G, as_float)

    @T.prim_func
    def count_in_cluster(
        indices: T.Tensor((N,), "int64"),
        out: T.Tensor((G,), dtype),
        divisor: T.float32,
    ):
        with T.Kernel(CLUSTER, threads=THREADS, cluster_dims=CLUSTER) as block:
            T.import_source(SOURCE)
            counts = T.alloc_shared((G,), "int32")
            tid = T.get_thread_binding()
            count(indices, counts, N, block * THREADS + tid, CLUSTER * THREADS, tid)
            T.call_extern("handle", ARRIVE)
            T.call_extern("handle", WAIT)
            for c in T.serial(T.ceildiv(G, CLUSTER * THREADS)):
                g = (c * CLUSTER + block) * THREADS + tid
                if g < G:
                    total = T.alloc_var("int32", init=0)
                    for rank in T.unroll(CLUSTER):
                        total = total + T.call_extern(
                            "int32", REMOTE, T.address_of(counts[g]), rank
                        )
                    store(out, g, total, divisor)
            # Nobody leaves while others read its counters.
            T.call_extern("handle", ARRIVE)
            T.call_extern("handle", WAIT)

    return count_in_cluster


def count_parts(num_groups: int, width: int, num_parts: int) -> Any:
    """The program of one histogram a block: int64 (n,) -> int32 (num_parts, num_groups)."""
    from tilelang import language as T

    G, P = num_groups, num_parts
    N = T.dynamic("num_indices")
    count = _count(G, width)

    @T.prim_func
    def count_parts(
        indices: T.Tensor((N,), "int64"),
        parts: T.Tensor((P, G), "int32"),
    ):
        with T.Kernel(P, threads=THREADS) as block:
            T.pdl_trigger()
            counts = T.alloc_shared((G,), "int32")
            tid = T.get_thread_binding()
            count(indices, counts, N, block * THREADS + tid, P * THREADS, tid)
            T.sync_threads()
            for c in T.serial(T.ceildiv(G, THREADS)):
                if c * THREADS + tid < G:
                    parts[block, c * THREADS + tid] = counts[c * THREADS + tid]

    return count_parts


def add_parts(num_groups: int, num_parts: int, as_float: bool) -> Any:
    """The program of the sums: int32 (num_parts, num_groups), divisor -> (num_groups,)."""
    from tilelang import language as T

    G, P, dtype = num_groups, num_parts, "float32" if as_float else "int32"
    store = _store(G, as_float)

    @T.prim_func
    def add_parts(
        parts: T.Tensor((P, G), "int32"),
        out: T.Tensor((G,), dtype),
        divisor: T.float32,
    ):
        with T.Kernel(T.ceildiv(G, SUM_GROUPS), threads=SUM_GROUPS * SUM_LANES) as block:
            # Started while the counting drains; it touches memory only after that is done.
            T.pdl_sync()
            sums = T.alloc_shared((SUM_LANES, SUM_GROUPS), "int32")
            column = T.get_thread_binding() % SUM_GROUPS
            lane = T.get_thread_binding() // SUM_GROUPS
            g = block * SUM_GROUPS + column
            total = T.alloc_var("int32", init=0)
            if g < G:
                for p in T.unroll(-(-P // SUM_LANES)):
                    if p * SUM_LANES + lane < P:
                        total = total + parts[p * SUM_LANES + lane, g]
            sums[lane, column] = total
            T.sync_threads()
            if lane == 0 and g < G:
                for other in T.unroll(1, SUM_LANES):
                    total = total + sums[other, column]
                store(out, g, total, divisor)

    return add_parts


def _count(num_groups: int, width: int) -> Any:
    """A macro: count what a block sees of ``indices`` in zeroed shared counters."""
    from tilelang import language as T

    G, V = num_groups, width

    @T.macro
    def count(indices, counts, n, first, stride, tid):
        held = T.alloc_local((UNROLL, V), "int64")
        for c in T.serial(T.ceildiv(G, THREADS)):
            if c * THREADS + tid < G:
                counts[c * THREADS + tid] = 0
        T.sync_threads()
        for step in T.serial(T.ceildiv(n, UNROLL * V * stride)):
            for u in T.unroll(UNROLL):
                at = ((step * UNROLL + u) * stride + first) * V
                if at < n:
                    for v in T.vectorized(V):
                        held[u, v] = indices[at + v]
                else:
                    for v in T.vectorized(V):
                        held[u, v] = T.int64(-1)
            for u in T.unroll(UNROLL):
                for v in T.unroll(V):
                    if held[u, v] >= T.int64(0) and held[u, v] < T.int64(G):
                        T.atomic_add(counts[T.cast(held[u, v], "int32")], 1)

    return count


def _store(num_groups: int, as_float: bool) -> Any:
    """A macro: a count, or the frequency of it, into the output."""
    from tilelang import language as T

    @T.macro
    def store(out, g, total, divisor):
        if as_float:
            out[g] = T.ieee_mul(T.cast(total, "float32"), T.float32(num_groups)) / divisor
        else:
            out[g] = total

    return store
