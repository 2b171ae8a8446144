"""The TileLang programs of topk on NVIDIA GPUs; cuda.py plans and launches them.

``select`` gives a CTA one row, or one of ``splits`` random shares of a row; ``merge`` joins shares.
Candidates are (key, place) pairs in shared memory: ``key`` orders as the policy orders values, the
place counts from the 16-byte boundary at or before the row's first candidate, so that it orders
as indices do and addresses of whole vectors are aligned for any stride.
"""

from typing import Any

from topk.radix_select.cuda_choose import choose
from topk.radix_select.cuda_finish import finishing
from topk.radix_select.cuda_format import FORMATS, LAST_PLACE, NOWHERE, TIES, keys
from topk.radix_select.cuda_merge import merge_program
from topk.radix_select.cuda_source import source
from topk.radix_select.cuda_stream import stream


def program(
    dtype: str, capacity: int, threads: int, residents: int, blocks: int, wide: bool, role: str
) -> Any:
    """One TileLang program.

    Args:
        dtype: of the input.
        capacity: candidates shared memory holds; more than the largest ``topk``.
        threads: of a CTA.
        residents: CTAs an SM must be able to hold (bounds the registers).
        blocks: the longest row in blocks.
        wide: int64 indices.
        role: ``whole`` (a CTA selects a row), ``share`` (a part of it), ``merge``.
    """
    if role == "merge":
        return merge_program(dtype, capacity, threads, residents, wide)
    return _select(dtype, capacity, threads, residents, blocks, wide, role)


def _select(
    dtype: str, capacity: int, threads: int, residents: int, blocks: int, wide: bool, role: str
) -> Any:
    from tilelang import language as T

    f, k = FORMATS[dtype], keys(dtype)
    u, packed, ONES = k.u, k.packed, k.ONES
    NT, C = threads, capacity
    WORDS = 4 * f.vectors
    BLOCK = 2 * threads * f.per_vector * f.vectors
    itype = "int64" if wide else "int32"
    code = source(dtype)
    s, m = stream(dtype, threads), choose(dtype, threads)
    bounds, visits, set_threshold, load = s.bounds, s.visits, s.set_threshold, s.load
    find_valid, find_hits, append = s.find_valid, s.find_hits, s.append
    find_floor, find_pivot, keep_best = m.find_floor, m.find_pivot, m.keep_best
    finish = finishing(dtype, threads, wide).finish

    nx, nb, ne, nd, nf, np_, nv, ni, nw, nc = (
        T.dynamic(s, "int64") for s in ("nx", "nb", "ne", "nd", "nf", "np", "nv", "ni", "nw", "nc")
    )

    @T.prim_func
    def select(
        src: T.Tensor((nx,), f.word),
        begin: T.Tensor((nb,), "int32"),
        end: T.Tensor((ne,), "int32"),
        draws: T.Tensor((nd,), "int32"),
        offset: T.Tensor((nf,), "int32"),
        pages: T.Tensor((np_,), "int32"),
        values: T.Tensor((nv,), f.word),
        indices: T.Tensor((ni,), itype),
        shares: T.Tensor((nw,), "int32"),
        floors: T.Tensor((nc,), "int32"),
        rows: T.int32,
        splits: T.int32,
        row_len: T.int32,
        misaligned: T.int32,
        topk: T.int32,
        limit: T.int32,
        order: T.int32,
        flags: T.int32,
        page_size: T.int32,
        value_fill: T.int32,
        stride: T.int64,
        values_stride: T.int64,
        indices_stride: T.int64,
        pages_stride: T.int64,
        index_fill: T.int64,
    ):
        with T.Kernel(splits, rows, threads=NT) as (part, row):
            T.import_source(code)
            T.annotate_min_blocks_per_sm(residents)
            keys = T.alloc_shared((C,), "uint32")
            places = T.alloc_shared((C,), "int32")
            tied = T.alloc_shared((2 * TIES,), "uint32")
            ranks = T.alloc_shared((TIES,), "int32")
            state = T.alloc_shared((16,), "int32")
            visit = T.alloc_shared((blocks,), "int32")
            x0 = T.alloc_local((WORDS,), "uint32")
            x1 = T.alloc_local((WORDS,), "uint32")
            b = T.alloc_local((3,), "int32")
            t = T.alloc_local((4,), "uint32")
            pivot = T.alloc_local((2,), "uint32")
            top = T.alloc_local((2,), "uint32")
            r2 = T.alloc_local((2,), "uint32")
            c2 = T.alloc_local((2,), "int32")
            v = T.alloc_local((2,), "int32")
            turns = T.alloc_local((1,), "int32")
            hits = T.alloc_local((2,), "uint32")
            valid = T.alloc_local((2,), "uint32")
            tid = T.get_thread_binding()
            bounds(row, begin, end, row_len, stride, misaligned, flags, b)
            base = T.Cast("int64", row) * stride
            origin = base + T.Cast("int64", b[2])
            count = T.alloc_var("int32", init=0)
            count = 0
            if b[1] > b[0]:
                count = T.ceildiv(b[1], BLOCK)
            mine = T.alloc_var("int32", init=0)
            mine = T.truncdiv(count - part + splits - 1, splits)
            if tid < 16:
                state[tid] = 0
            turns[0] = 0
            visits(draws, visit, count, part, splits, tid)
            # Nothing compares below NaN, so at first everything passes.
            t[0] = packed(u(ONES >> 1))
            t[1] = packed(u(ONES >> 1))
            t[2] = u(0xFFFFFFFF)
            t[3] = u(LAST_PLACE)
            pivot[0] = u(0)
            pivot[1] = u(0)
            if mine > 0:
                load(x0, src, origin, b, visit[0], 0, tid)
                load(x1, src, origin, b, visit[0], 1, tid)
                first = visit[0] * BLOCK
                if T.min(b[1], first + BLOCK) - T.max(b[0], first) > topk:
                    find_valid(b, visit[0], 0, tid, valid)
                    find_valid(b, visit[0], 1, tid, valid)
                    find_floor(
                        x0, x1, state, turns, pivot, r2, c2, topk, (limit - topk) // 4, tid, valid
                    )
                    set_threshold(pivot, t)
            for r in T.serial(mine):
                now = visit[r]
                then = visit[T.min(r + 1, mine - 1)]
                for half, x in ((0, x0), (1, x1)):
                    find_valid(b, now, half, tid, valid)
                    find_hits(x, t, b, now, half, tid, valid, hits)
                    append(x, keys, places, state, limit, now, half, tid, hits)
                    full = T.alloc_var("int32", init=0)
                    full = T.syncthreads_or(hits[1] != u(0))
                    while full != 0:
                        find_pivot(
                            keys, places, state, turns, pivot, top, v, r2, c2, limit, topk,
                            (limit - topk) // 4, 0, tid,
                        )  # fmt: skip
                        keep_best(
                            keys, places, tied, ranks, state, pivot, top, v, limit, False, tid
                        )
                        set_threshold(pivot, t)
                        left = T.alloc_var("uint32", init=0)
                        left = hits[1]
                        find_hits(x, t, b, now, half, tid, valid, hits)
                        hits[0] = hits[0] & left
                        append(x, keys, places, state, limit, now, half, tid, hits)
                        full = T.syncthreads_or(hits[1] != u(0))
                    if r + 1 < mine:
                        load(x, src, origin, b, then, half, tid)
            n = T.alloc_var("int32", init=0)
            n = state[0]
            if n > topk:
                T.sync_threads()
                find_pivot(keys, places, state, turns, pivot, top, v, r2, c2, n, topk, 0, TIES, tid)
                keep_best(keys, places, tied, ranks, state, pivot, top, v, n, True, tid)
                n = topk
            if role == "whole":
                finish(
                    src, values, indices, offset, pages, keys, places, n, b, base, row, topk,
                    order, flags, values_stride, indices_stride, pages_stride, page_size,
                    index_fill, value_fill, tid,
                )  # fmt: skip
            else:
                # A share's best, and a key that its topk / splits best reach: the smallest of
                # those keys over all shares is reached by at least topk candidates.
                share = row * splits + part
                few = T.ceildiv(topk, splits)
                if n > few:
                    T.sync_threads()
                    find_pivot(
                        keys, places, state, turns, pivot, top, v, r2, c2, n, few, few, 0, tid
                    )
                else:
                    pivot[0] = u(0)
                if tid == 0:
                    floors[share] = T.reinterpret(pivot[0], "int32")
                for i in T.serial(T.ceildiv(topk, NT)):
                    c = i * NT + tid
                    if c < topk:
                        at = T.Cast("int64", share) * (2 * topk) + c
                        if c < n:
                            shares[at] = T.reinterpret(keys[c], "int32")
                            shares[at + topk] = places[c]
                        else:
                            shares[at] = 0
                            shares[at + topk] = NOWHERE

    return select
