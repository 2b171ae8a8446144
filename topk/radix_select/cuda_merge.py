"""The program that joins the shares of a row: pairs stream past a floor instead of values."""

from typing import Any

from topk.radix_select.cuda_choose import choose
from topk.radix_select.cuda_finish import finishing
from topk.radix_select.cuda_format import FORMATS, LAST_PLACE, NOWHERE, TIES, WARP, keys
from topk.radix_select.cuda_source import source
from topk.radix_select.cuda_stream import stream


def merge_program(dtype: str, capacity: int, threads: int, residents: int, wide: bool) -> Any:
    """A CTA a row; arguments as those of ``select_program``."""
    from tilelang import language as T

    f, k, m = FORMATS[dtype], keys(dtype), choose(dtype, threads)
    u, ONES = k.u, k.ONES
    NT, C = threads, capacity
    itype = "int64" if wide else "int32"
    code = source(dtype)
    bounds, finish = stream(dtype, threads).bounds, finishing(dtype, threads, wide).finish
    find_pivot, keep_best = m.find_pivot, m.keep_best

    @T.macro
    def append_pairs(k4, p4, keys, places, state, limit, tid, hits):
        lane = tid % WARP
        votes = T.alloc_local((4,), "uint32")
        for q in tuple(range(4)):
            votes[q] = T.Cast("uint32", T.ballot_sync(T.Cast("int32", (hits[0] >> u(q)) & u(1))))
        hits[1] = u(0)
        spot = T.alloc_var("int32", init=0)
        if lane == 0:
            spot = T.call_extern(
                "int32", "ak_take", T.address_of(state[0]),
                T.Cast("int32", T.popcount(votes[0]) + T.popcount(votes[1])
                       + T.popcount(votes[2]) + T.popcount(votes[3])),
            )  # fmt: skip
        spot = T.shfl_sync(spot, 0)
        below = (u(1) << T.Cast("uint32", lane)) - u(1)
        for q in tuple(range(4)):
            if ((hits[0] >> u(q)) & u(1)) != u(0):
                mine = spot + T.Cast("int32", T.popcount(votes[q] & below))
                if mine < limit:
                    keys[mine] = k4[q]
                    places[mine] = p4[q]
                else:
                    hits[1] = hits[1] | u(1 << q)
            spot = spot + T.Cast("int32", T.popcount(votes[q]))

    @T.macro
    def load_keys(k4, shares, row, splits, topk, r, columns, tid):
        # Four shares at a time, a column of NT candidates of each.
        for q in tuple(range(4)):
            s = T.min(T.truncdiv(r, columns) * 4 + q, splits - 1)
            c = T.min(T.truncmod(r, columns) * NT + tid, topk - 1)
            at = (T.Cast("int64", row) * splits + s) * (2 * topk) + c
            k4[q] = T.reinterpret(shares[at], "uint32")

    @T.macro
    def passing(k4, p4, pivot, wanted, hits):
        hits[0] = u(0)
        for q in tuple(range(4)):
            late = T.Cast("uint32", LAST_PLACE - p4[q])
            if T.Or(k4[q] > pivot[0], T.And(k4[q] == pivot[0], late >= pivot[1])):
                hits[0] = hits[0] | u(1 << q)
        hits[0] = hits[0] & wanted

    nx, nb, ne, nf, np_, nv, ni, nw, nc = (
        T.dynamic(s, "int64") for s in ("nx", "nb", "ne", "nf", "np", "nv", "ni", "nw", "nc")
    )

    @T.prim_func
    def merge(
        src: T.Tensor((nx,), f.word),
        begin: T.Tensor((nb,), "int32"),
        end: T.Tensor((ne,), "int32"),
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
        with T.Kernel(rows, threads=NT) as row:
            T.import_source(code)
            T.annotate_min_blocks_per_sm(residents)
            keys = T.alloc_shared((C,), "uint32")
            places = T.alloc_shared((C,), "int32")
            tied = T.alloc_shared((2 * TIES,), "uint32")
            ranks = T.alloc_shared((TIES,), "int32")
            state = T.alloc_shared((16,), "int32")
            k4 = T.alloc_local((4,), "uint32")
            next4 = T.alloc_local((4,), "uint32")
            p4 = T.alloc_local((4,), "int32")
            b = T.alloc_local((3,), "int32")
            pivot = T.alloc_local((2,), "uint32")
            top = T.alloc_local((2,), "uint32")
            r2 = T.alloc_local((2,), "uint32")
            c2 = T.alloc_local((2,), "int32")
            v = T.alloc_local((2,), "int32")
            turns = T.alloc_local((1,), "int32")
            hits = T.alloc_local((2,), "uint32")
            tid = T.get_thread_binding()
            bounds(row, begin, end, row_len, stride, misaligned, flags, b)
            base = T.Cast("int64", row) * stride
            if tid < 16:
                state[tid] = 0
            turns[0] = 0
            pivot[0] = u(ONES)
            pivot[1] = u(0)
            for i in T.serial(T.ceildiv(splits, WARP)):
                s = T.min(i * WARP + tid % WARP, splits - 1)
                pivot[0] = T.min(pivot[0], T.reinterpret(floors[row * splits + s], "uint32"))
            for s in tuple(range(5)):
                pivot[0] = T.min(pivot[0], T.shfl_xor(pivot[0], 1 << s))
            T.sync_threads()
            columns = T.ceildiv(topk, NT)
            rounds = columns * T.ceildiv(splits, 4)
            load_keys(next4, shares, row, splits, topk, 0, columns, tid)
            for r in T.serial(rounds):
                for q in tuple(range(4)):
                    k4[q] = next4[q]
                if r + 1 < rounds:
                    load_keys(next4, shares, row, splits, topk, r + 1, columns, tid)
                wanted = T.alloc_var("uint32", init=0)
                wanted = u(0)
                for q in tuple(range(4)):
                    p4[q] = NOWHERE
                    s = T.truncdiv(r, columns) * 4 + q
                    c = T.truncmod(r, columns) * NT + tid
                    if T.And(T.And(s < splits, c < topk), k4[q] >= pivot[0]):
                        p4[q] = shares[(T.Cast("int64", row) * splits + s) * (2 * topk) + topk + c]
                    if p4[q] != NOWHERE:
                        wanted = wanted | u(1 << q)
                passing(k4, p4, pivot, wanted, hits)
                append_pairs(k4, p4, keys, places, state, limit, tid, hits)
                full = T.alloc_var("int32", init=0)
                full = T.syncthreads_or(hits[1] != u(0))
                while full != 0:
                    wanted = hits[1]
                    find_pivot(
                        keys, places, state, turns, pivot, top, v, r2, c2, limit, topk,
                        (limit - topk) // 4, 0, tid,
                    )  # fmt: skip
                    keep_best(keys, places, tied, ranks, state, pivot, top, v, limit, False, tid)
                    passing(k4, p4, pivot, wanted, hits)
                    append_pairs(k4, p4, keys, places, state, limit, tid, hits)
                    full = T.syncthreads_or(hits[1] != u(0))
            n = T.alloc_var("int32", init=0)
            n = state[0]
            if n > topk:
                T.sync_threads()
                find_pivot(keys, places, state, turns, pivot, top, v, r2, c2, n, topk, 0, TIES, tid)
                keep_best(keys, places, tied, ranks, state, pivot, top, v, n, True, tid)
                n = topk
            finish(
                src, values, indices, offset, pages, keys, places, n, b, base, row, topk, order,
                flags, values_stride, indices_stride, pages_stride, page_size, index_fill,
                value_fill, tid,
            )  # fmt: skip

    return merge
