"""The programs of get_fused_mapping on NVIDIA GPUs, in TileLang.

Both cut the entries (token, k) into a run a block, find where each run's entries of an expert
begin, and then number them in order: a match in the warp, counts of warps summed.

*Clusters*, one launch. Every cluster reads all entries, an eighth a block, and counts them by
expert; the blocks read each other's counts. So every cluster knows all sizes without a barrier
across the grid. The runs, one a block of the grid, lie within the eighths: block r of cluster c
places run c of eighth r, and has counted apart what lies before it there.

*Two launches*, for more entries than eight SMs read in time: a count a run, then every block adds
up the counts of all runs.
"""

from typing import Any

from tilekernels.cluster import ARRIVE, CLUSTER, REMOTE, SOURCE, WAIT
from tilekernels.get_fused_mapping.cuda_placing import RUNS, placing_macros

NUM_CLUSTERS = 16
assert RUNS == CLUSTER * NUM_CLUSTERS
UNROLL = 4
"""Loads in flight a thread, while counting."""


def threads_of(num_experts: int) -> int:
    """Threads of a block: at least one an expert."""
    return 512 if num_experts <= 512 else 1024


def cluster_program(num_experts: int, num_topk: int, width: int) -> Any:
    """One launch: int64 (n,) entries, alignment -> the seven outputs.

    Args:
        width: entries in one load, 1 or 2.
    """
    from tilelang import language as T

    E, V, threads = num_experts, width, threads_of(num_experts)
    steps, m = RUNS * 2, placing_macros(num_experts, num_topk, threads)
    n, X = T.dynamic("num_indices, num_expanded_tokens")

    @T.prim_func
    def map_in_clusters(
        idx: T.Tensor((n,), "int64"),
        pos_to_expert: T.Tensor((X,), "int32"),
        pos_to_token: T.Tensor((X,), "int32"),
        pos_to_token_topk: T.Tensor((X,), "int32"),
        places: T.Tensor((n,), "int32"),
        expert_start: T.Tensor((E,), "int32"),
        expert_end: T.Tensor((E,), "int32"),
        sizes: T.Tensor((E,), "int32"),
        alignment: T.int32,
    ):
        with T.Kernel(RUNS, threads=threads, cluster_dims=CLUSTER) as block:
            T.import_source(SOURCE)
            tid = T.get_thread_binding()
            rank = block % CLUSTER
            # An eighth is NUM_CLUSTERS runs of an even number of entries.
            run = T.ceildiv(n, steps) * 2
            first = rank * (run * NUM_CLUSTERS)
            last = T.min(first + run * NUM_CLUSTERS, n)
            begin = first + block // CLUSTER * run
            counts = T.alloc_shared((2 * E,), "int32")
            totals = T.alloc_shared((E,), "int32")
            of_warp, ends, filled = m.shared()
            held = T.alloc_local((UNROLL, V), "int64")
            total = T.alloc_var("int32", init=0)
            before = T.alloc_var("int32", init=0)
            next_place = T.alloc_var("int32", init=0)
            for c in T.unroll(-(-2 * E // threads)):
                if c * threads + tid < 2 * E:
                    counts[c * threads + tid] = 0
            T.sync_threads()
            for step in T.serial(T.ceildiv(last - first, UNROLL * V * threads)):
                for u in T.unroll(UNROLL):
                    at = first + ((step * UNROLL + u) * threads + tid) * V
                    if at < last:
                        for v in T.vectorized(V):
                            held[u, v] = idx[at + v]
                    else:
                        for v in T.vectorized(V):
                            held[u, v] = T.int64(-1)
                for u in T.unroll(UNROLL):
                    for v in T.unroll(V):
                        if held[u, v] >= T.int64(0) and held[u, v] < T.int64(E):
                            # Runs are even, so a load lies on one side of a run's begin.
                            side = first + ((step * UNROLL + u) * threads + tid) * V < begin
                            expert = T.cast(held[u, v], "int32")
                            T.atomic_add(counts[T.if_then_else(side, expert, E + expert)], 1)
            T.sync_threads()
            if tid < E:
                totals[tid] = counts[tid] + counts[E + tid]
            T.call_extern("handle", ARRIVE)
            T.call_extern("handle", WAIT)
            if tid < E:
                for other in T.unroll(CLUSTER):
                    theirs = T.alloc_var("int32")
                    theirs = T.call_extern("int32", REMOTE, T.address_of(totals[tid]), other)
                    total = total + theirs
                    if other < rank:
                        before = before + theirs
                before = before + counts[tid]
            T.call_extern("handle", ARRIVE)
            next_place = m.lay_out(
                total, before, alignment, block, ends, filled, expert_start, expert_end, sizes
            )
            m.place(
                idx, begin, T.min(begin + run, last), next_place, of_warp,
                pos_to_expert, pos_to_token, pos_to_token_topk, places, X,
            )  # fmt: skip
            m.pad(block, ends, filled, pos_to_expert, pos_to_token, pos_to_token_topk, X)
            # Nobody leaves while others read its counts.
            T.call_extern("handle", WAIT)

    return map_in_clusters


def count_program(num_experts: int) -> Any:
    """The first of two launches: int64 (n,) -> int32 (RUNS, E)."""
    from tilelang import language as T

    E, threads = num_experts, threads_of(num_experts)
    n = T.dynamic("num_indices")

    @T.prim_func
    def count_experts(
        idx: T.Tensor((n,), "int64"),
        counts: T.Tensor((RUNS, E), "int32"),
    ):
        with T.Kernel(RUNS, threads=threads) as block:
            T.pdl_trigger()
            tid = T.get_thread_binding()
            seen = T.alloc_shared((E,), "int32")
            run = T.ceildiv(n, RUNS)
            if tid < E:
                seen[tid] = 0
            T.sync_threads()
            for i in T.serial(T.ceildiv(run, threads)):
                at = block * run + i * threads + tid
                if at < T.min(block * run + run, n):
                    expert = idx[at]
                    if expert >= T.int64(0) and expert < T.int64(E):
                        T.atomic_add(seen[T.cast(expert, "int32")], 1)
            T.sync_threads()
            if tid < E:
                counts[block, tid] = seen[tid]

    return count_experts


def place_program(num_experts: int, num_topk: int) -> Any:
    """The second of two launches: entries and counts -> the seven outputs."""
    from tilelang import language as T

    E, threads = num_experts, threads_of(num_experts)
    m = placing_macros(num_experts, num_topk, threads)
    # Threads share the counts of an expert, each with every so many runs.
    columns = 1 << (E - 1).bit_length()
    sharers = threads // columns
    n, X = T.dynamic("num_indices, num_expanded_tokens")

    @T.prim_func
    def place_entries(
        idx: T.Tensor((n,), "int64"),
        counts: T.Tensor((RUNS, E), "int32"),
        pos_to_expert: T.Tensor((X,), "int32"),
        pos_to_token: T.Tensor((X,), "int32"),
        pos_to_token_topk: T.Tensor((X,), "int32"),
        places: T.Tensor((n,), "int32"),
        expert_start: T.Tensor((E,), "int32"),
        expert_end: T.Tensor((E,), "int32"),
        sizes: T.Tensor((E,), "int32"),
        alignment: T.int32,
    ):
        with T.Kernel(RUNS, threads=threads) as block:
            # Started while the counting drains; it touches memory only after that is done.
            T.pdl_sync()
            tid = T.get_thread_binding()
            run = T.ceildiv(n, RUNS)
            of_warp, ends, filled = m.shared()
            sums = T.alloc_shared((2, E), "int32")
            total = T.alloc_var("int32", init=0)
            before = T.alloc_var("int32", init=0)
            next_place = T.alloc_var("int32", init=0)
            mine = tid % columns
            if tid < E:
                sums[0, tid] = 0
                sums[1, tid] = 0
            T.sync_threads()
            if mine < E:
                for i in T.unroll(-(-RUNS // sharers)):
                    other = i * sharers + tid // columns
                    if other < RUNS:
                        seen = T.alloc_var("int32")
                        seen = counts[other, mine]
                        total = total + seen
                        if other < block:
                            before = before + seen
                T.atomic_add(sums[0, mine], total)
                T.atomic_add(sums[1, mine], before)
            T.sync_threads()
            if tid < E:
                total = sums[0, tid]
                before = sums[1, tid]
            next_place = m.lay_out(
                total, before, alignment, block, ends, filled, expert_start, expert_end, sizes
            )
            begin = T.min(block * run, n)
            m.place(
                idx, begin, T.min(begin + run, n), next_place, of_warp,
                pos_to_expert, pos_to_token, pos_to_token_topk, places, X,
            )  # fmt: skip
            m.pad(block, ends, filled, pos_to_expert, pos_to_token, pos_to_token_topk, X)

    return place_entries
