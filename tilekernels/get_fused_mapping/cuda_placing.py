"""What blocks that place entries have in common: macros for the programs of get_fused_mapping."""

from types import SimpleNamespace
from typing import Any

from tilekernels.machine import WARP

RUNS = 128
"""Blocks of the programs that place; runs of entries."""


def placing_macros(num_experts: int, num_topk: int, threads: int) -> Any:
    """Macros of the blocks that place: thread e keeps the books of expert e."""
    from tilelang import language as T

    E, K = num_experts, num_topk
    warps = threads // WARP
    per_expert = max(1, RUNS * warps // E)

    @T.macro
    def shared():
        of_warp = T.alloc_shared((warps, E), "int32")
        ends = T.alloc_shared((E,), "int32")
        filled = T.alloc_shared((E,), "int32")
        return of_warp, ends, filled

    @T.macro
    def lay_out(total, before, alignment, block, ends, filled, expert_start, expert_end, sizes):
        # Where every expert's run of positions begins and ends; and this block's next in it.
        of_warps = T.alloc_shared((warps,), "int32")
        tid = T.get_thread_binding()
        size = T.alloc_var("int32", init=T.truncdiv(total + alignment - 1, alignment) * alignment)
        end = T.alloc_var("int32", init=size)
        for step in (1, 2, 4, 8, 16):
            earlier = T.alloc_var("int32")
            earlier = T.shfl_up(end, step)
            if tid % WARP >= step:
                end = end + earlier
        if tid % WARP == WARP - 1:
            of_warps[tid // WARP] = end
        T.sync_threads()
        for w in T.unroll(-(-E // WARP)):
            if w < tid // WARP:
                end = end + of_warps[w]
        if tid < E:
            ends[tid] = end
            filled[tid] = end - size + total
            if block == 0:
                expert_start[tid] = end - size
                expert_end[tid] = end
                sizes[tid] = size
        T.sync_threads()
        return T.alloc_var("int32", init=end - size + before)

    @T.macro
    def place(idx, begin, last, first, of_warp, to_expert, to_token, to_token_topk, places, X):
        next_place = T.alloc_var("int32", init=first)
        seen = T.alloc_local((warps,), "int32")
        tid = T.get_thread_binding()
        warp, lane = tid // WARP, tid % WARP
        for i in T.serial(T.ceildiv(T.max(last - begin, 0), threads)):
            at = begin + i * threads + tid
            expert = T.alloc_var("int32", init=-1)
            expert = -1
            if at < last:
                if idx[at] >= T.int64(0) and idx[at] < T.int64(E):
                    expert = T.cast(idx[at], "int32")
            same = T.alloc_var("uint32")
            same = T.match_any_sync(expert)
            below = (T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1)
            number = T.alloc_var("int32")
            number = T.cast(T.popcount(same & below), "int32")
            for e in T.unroll(-(-E // WARP)):
                if e * WARP + lane < E:
                    of_warp[warp, e * WARP + lane] = 0
            T.sync_warp()
            if expert >= 0 and number == 0:
                of_warp[warp, expert] = T.cast(T.popcount(same), "int32")
            T.sync_threads()
            if tid < E:
                for w in T.unroll(warps):
                    seen[w] = of_warp[w, tid]
                for w in T.unroll(warps):
                    of_warp[w, tid] = next_place
                    next_place = next_place + seen[w]
            T.sync_threads()
            if at < last:
                position = T.alloc_var("int32")
                position = -1
                if expert >= 0:
                    position = of_warp[warp, expert] + number
                    if position < X:
                        to_expert[position] = expert
                        to_token[position] = at // K
                        to_token_topk[position] = at
                    else:
                        position = -1
                places[at] = position
            # A warp reads its own row only, and alone puts zeros there.
            T.sync_warp()

    @T.macro
    def pad(block, ends, filled, to_expert, to_token, to_token_topk, X):
        # Behind every expert's entries, some warps of the grid an expert; then behind the last.
        tid = T.get_thread_binding()
        warp = block * warps + tid // WARP
        for i in T.serial(T.ceildiv(E * per_expert, RUNS * warps)):
            owner = (i * RUNS * warps + warp) // per_expert
            if owner < E:
                first = T.alloc_var("int32")
                first = filled[owner] + warp % per_expert * WARP + tid % WARP
                end = T.alloc_var("int32")
                end = T.min(ends[owner], X)
                for p in T.serial(T.ceildiv(T.max(end - first, 0), per_expert * WARP)):
                    position = first + p * (per_expert * WARP)
                    to_expert[position] = -1
                    to_token[position] = -1
                    to_token_topk[position] = -1
        tail = T.alloc_var("int32")
        tail = ends[E - 1]
        for p in T.serial(T.ceildiv(T.max(X - tail, 0), RUNS * threads)):
            position = tail + p * (RUNS * threads) + block * threads + tid
            if position < X:
                to_expert[position] = -1
                to_token[position] = -1
                to_token_topk[position] = -1

    return SimpleNamespace(shared=shared, lay_out=lay_out, place=place, pad=pad)
