"""get_fused_mapping on NVIDIA GPUs, in TileLang: two launches, no barrier across the grid.

The choices are cut into at most ``MAX_CHUNKS`` runs, a block each. The first launch counts the
experts of every run. In the second every block adds the counts of earlier runs to find where its
entries begin, numbers them in order (a match in the warp, counts of warps summed) and writes the
maps; the blocks share out the padding.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda

if TYPE_CHECKING:
    import torch

THREADS = 1024
WARPS = THREADS // WARP
MAX_CHUNKS = 64
"""Every block of the second launch reads all counts: more blocks, more reading."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    topk_idx: "torch.Tensor",
    num_experts: int,
    num_expanded_tokens: int,
    alignment: int,
    *,
    out: "tuple[torch.Tensor, ...]",
) -> None:
    """Fill the seven outputs."""
    import torch

    flat, topk = topk_idx.view(-1), topk_idx.shape[1]
    chunks = max(1, min(MAX_CHUNKS, -(-len(flat) // THREADS)))
    counts = torch.empty((chunks, num_experts), dtype=torch.int32, device=topk_idx.device)
    count, place = kernels(num_experts, topk)
    if len(flat):
        count(flat, counts)
    else:
        counts.zero_()
    maps = (t.view(-1) for t in out)
    place(flat, counts, *maps, alignment)


@lru_cache(maxsize=64)
def kernels(num_experts: int, num_topk: int, arch: str = "") -> tuple[Any, Any]:
    """Both compiled kernels; ``arch`` compiles where no GPU is."""
    count, place = count_program(num_experts), place_program(num_experts, num_topk)
    return tuple(compile_cuda(p, arch, TL_DISABLE_THREAD_STORAGE_SYNC=True) for p in (count, place))


def count_program(num_experts: int) -> Any:
    """The first launch: int64 (n,) -> int32 (chunks, E)."""
    from tilelang import language as T

    E = num_experts
    n, chunks = T.dynamic("num_indices, num_chunks")

    @T.prim_func
    def count_experts(
        idx: T.Tensor((n,), "int64"),
        counts: T.Tensor((chunks, E), "int32"),
    ):
        with T.Kernel(chunks, threads=THREADS) as chunk:
            tid = T.get_thread_binding()
            seen = T.alloc_shared((E,), "int32")
            tiles = T.ceildiv(T.ceildiv(n, THREADS), chunks)
            if tid < E:
                seen[tid] = 0
            T.sync_threads()
            for i in T.serial(tiles):
                at = (chunk * tiles + i) * THREADS + tid
                if at < n:
                    expert = idx[at]
                    if expert >= T.int64(0) and expert < T.int64(E):
                        T.atomic_add(seen[T.cast(expert, "int32")], 1)
            T.sync_threads()
            if tid < E:
                counts[chunk, tid] = seen[tid]

    return count_experts


def place_program(num_experts: int, num_topk: int) -> Any:
    """The second launch: choices and counts -> the seven outputs."""
    from tilelang import language as T

    E, K = num_experts, num_topk
    steps = tuple(1 << i for i in range((E - 1).bit_length()))
    n, chunks, X = T.dynamic("num_indices, num_chunks, num_expanded_tokens")

    @T.prim_func
    def place_entries(
        idx: T.Tensor((n,), "int64"),
        counts: T.Tensor((chunks, E), "int32"),
        pos_to_expert: T.Tensor((X,), "int32"),
        pos_to_token: T.Tensor((X,), "int32"),
        pos_to_token_topk: T.Tensor((X,), "int32"),
        places: T.Tensor((n,), "int32"),
        expert_start: T.Tensor((E,), "int32"),
        expert_end: T.Tensor((E,), "int32"),
        sizes: T.Tensor((E,), "int32"),
        alignment: T.int32,
    ):
        with T.Kernel(chunks, threads=THREADS) as chunk:
            tid = T.get_thread_binding()
            warp = tid // WARP
            lane = tid % WARP
            of_warp = T.alloc_shared((WARPS, E), "int32")
            ends = T.alloc_shared((2, E), "int32")
            filled = T.alloc_shared((E,), "int32")
            before = T.alloc_var("int32", init=0)
            total = T.alloc_var("int32", init=0)
            size = T.alloc_var("int32", init=0)
            # Sizes, and their running sum over experts.
            if tid < E:
                for c in T.serial(chunks):
                    if c == chunk:
                        before = total
                    total = total + counts[c, tid]
                size = T.ceildiv(total, alignment) * alignment
                ends[0, tid] = size
            T.sync_threads()
            for s, step in enumerate(steps):
                if tid < E:
                    if tid >= step:
                        ends[(s + 1) % 2, tid] = ends[s % 2, tid] + ends[s % 2, tid - step]
                    else:
                        ends[(s + 1) % 2, tid] = ends[s % 2, tid]
                T.sync_threads()
            last = len(steps) % 2
            next_place = T.alloc_var("int32", init=0)
            if tid < E:
                next_place = ends[last, tid] - size + before
                filled[tid] = ends[last, tid] - size + total
                if chunk == 0:
                    expert_start[tid] = ends[last, tid] - size
                    expert_end[tid] = ends[last, tid]
                    sizes[tid] = size
            T.sync_threads()
            # Entries of this run, a tile of threads at a time.
            tiles = T.ceildiv(T.ceildiv(n, THREADS), chunks)
            for i in T.serial(tiles):
                at = (chunk * tiles + i) * THREADS + tid
                expert = T.alloc_var("int32", init=-1)
                expert = -1
                if at < n:
                    if idx[at] >= T.int64(0) and idx[at] < T.int64(E):
                        expert = T.cast(idx[at], "int32")
                same = T.alloc_var("uint32")
                same = T.match_any_sync(expert)
                below = (T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1)
                number = T.alloc_var("int32")
                number = T.cast(T.popcount(same & below), "int32")
                for e in T.serial(T.ceildiv(E, WARP)):
                    if e * WARP + lane < E:
                        of_warp[warp, e * WARP + lane] = 0
                T.sync_warp()
                if expert >= 0 and number == 0:
                    of_warp[warp, expert] = T.cast(T.popcount(same), "int32")
                T.sync_threads()
                if tid < E:
                    for w in T.unroll(WARPS):
                        mine = T.alloc_var("int32")
                        mine = of_warp[w, tid]
                        of_warp[w, tid] = next_place
                        next_place = next_place + mine
                T.sync_threads()
                if at < n:
                    place = T.alloc_var("int32")
                    place = -1
                    if expert >= 0:
                        place = of_warp[warp, expert] + number
                        if place < X:
                            pos_to_expert[place] = expert
                            pos_to_token[place] = at // K
                            pos_to_token_topk[place] = at
                        else:
                            place = -1
                    places[at] = place
                T.sync_threads()
            # Padding behind every expert's entries, and behind the last expert.
            for e in T.serial(T.ceildiv(E, chunks)):
                owner = e * chunks + chunk
                if owner < E:
                    first = T.alloc_var("int32")
                    first = filled[owner]
                    end = T.alloc_var("int32")
                    end = T.min(ends[last, owner], X)
                    for p in T.serial(T.ceildiv(T.max(end - first, 0), THREADS)):
                        pad = first + p * THREADS + tid
                        if pad < end:
                            pos_to_expert[pad] = -1
                            pos_to_token[pad] = -1
                            pos_to_token_topk[pad] = -1
            tail = T.alloc_var("int32")
            tail = ends[last, E - 1]
            for p in T.serial(T.ceildiv(T.max(X - tail, 0), chunks * THREADS)):
                pad_1 = tail + (p * chunks + chunk) * THREADS + tid
                if pad_1 < X:
                    pos_to_expert[pad_1] = -1
                    pos_to_token[pad_1] = -1
                    pos_to_token_topk[pad_1] = -1

    return place_entries
