"""How a CTA streams a row: its bounds, its blocks in random order, loads, hits, appending."""

from types import SimpleNamespace
from typing import Any

from topk.radix_select.cuda_format import FORMATS, HAS_BEGIN, HAS_END, LAST_PLACE, WARP, keys


def stream(dtype: str, threads: int) -> Any:
    """Macros of the pass over a row."""
    from tilelang import language as T

    f, k = FORMATS[dtype], keys(dtype)
    u, is_, key_of, value_of, packed, reached = (
        k.u, k.is_, k.key_of, k.value_of, k.packed, k.reached
    )  # fmt: skip
    INF_KEY, NAN_KEY, narrow = k.INF_KEY, k.NAN_KEY, k.narrow
    NT, E, U = threads, f.per_vector, f.vectors
    WORDS, HALF = 4 * U, threads * E * U
    BLOCK = 2 * HALF

    @T.macro
    def bounds(row, begin, end, row_len, stride, misaligned, flags, b):
        # b: first, last (places), shift (index minus place), and the flat position of place 0.
        b[0] = 0
        b[1] = row_len
        if (flags & HAS_BEGIN) != 0:
            b[0] = T.min(T.max(begin[row], 0), row_len)
        if (flags & HAS_END) != 0:
            b[1] = T.min(end[row], row_len)
        b[1] = T.max(b[1], b[0])
        sh = T.Cast("int32", (T.Cast("int64", row) * stride + T.Cast("int64", misaligned)) % E)
        start = (b[0] + sh) // E * E
        b[2] = start - sh
        b[0] = b[0] - b[2]
        b[1] = b[1] - b[2]

    @T.macro
    def visits(draws, visit, count, part, splits, tid):
        # The row's blocks in random order, and every splits-th of them for this share.
        size = T.alloc_var("int32", init=1)
        while size < count:
            size = size * 2
        if count == 1 and tid == 0:
            visit[0] = 0
        if count > 1 and tid < WARP:
            seen = T.alloc_var("int32", init=0)
            for i in T.serial(T.ceildiv(size, WARP)):
                c = i * WARP + tid
                block = T.alloc_var("int32", init=0)
                block = count
                if c < size:
                    block = draws[size + c]
                votes = T.Cast("uint32", T.ballot_sync(T.Cast("int32", block < count)))
                below = (u(1) << T.Cast("uint32", tid)) - u(1)
                rank = seen + T.Cast("int32", T.popcount(votes & below))
                if block < count and T.truncmod(rank, splits) == part:
                    visit[T.truncdiv(rank, splits)] = block
                seen = seen + T.Cast("int32", T.popcount(votes))
        T.sync_threads()

    @T.macro
    def set_threshold(pivot, t):
        # t: strict, loose, what strict keeps; and the last place at which loose applies.
        key = pivot[0]
        over = T.Cast("int64", key) > INF_KEY
        t[0] = packed(T.if_then_else(over, u(f.inf), value_of(key)))
        t[1] = reached(key)
        t[2] = T.if_then_else(is_(key, NAN_KEY), u(0), u(0xFFFFFFFF))
        t[3] = u(LAST_PLACE) - pivot[1]

    @T.macro
    def load(x, src, origin, b, block, half, tid):
        edge = T.Or(block * BLOCK < b[0], block * BLOCK + BLOCK > b[1])
        for v in tuple(range(U)):
            i = block * BLOCK + half * HALF + v * (NT * E) + tid * E
            T.call_extern(
                "void", "ak_load", T.address_of(src[0]), origin, i, b[0], b[1],
                T.Cast("int32", edge), T.address_of(x[v * 4]),
            )  # fmt: skip

    @T.macro
    def find_valid(b, block, half, tid, valid):
        # Which elements are candidates at all; only blocks at an edge of the row ask.
        valid[half] = u(0xFFFFFFFF)
        if T.Or(block * BLOCK < b[0], block * BLOCK + BLOCK > b[1]):
            valid[half] = u(0)
            for v in tuple(range(U)):
                i = block * BLOCK + half * HALF + v * (NT * E) + tid * E
                some = T.call_extern("uint32", "ak_valid", i, b[0], b[1])
                valid[half] = valid[half] | (some << u(4 * v))

    @T.macro
    def find_hits(x, t, b, block, half, tid, valid, hits):
        hits[0] = u(0)
        for v in tuple(range(U)):
            i = block * BLOCK + half * HALF + v * (NT * E) + tid * E
            loose = T.Cast("uint32", i) <= t[3]
            limit = T.if_then_else(loose, t[1], t[0])
            keep = T.if_then_else(loose, u(0xFFFFFFFF), t[2])
            found = T.call_extern("uint32", "ak_hits", T.address_of(x[v * 4]), limit)
            hits[0] = hits[0] | ((found & keep) << u(4 * v))
        hits[0] = hits[0] & valid[half]

    @T.macro
    def append(x, keys, places, state, limit, block, half, tid, hits):
        # hits[0]: what to store; hits[1], after: what found no room.
        lane = tid % WARP
        hits[1] = u(0)
        if T.any_sync(hits[0] != u(0)) != 0:
            total = T.call_extern("uint32", "ak_sum", T.popcount(hits[0]))
            spot = T.alloc_var("int32", init=0)
            if lane == 0:
                spot = T.call_extern(
                    "int32", "ak_take", T.address_of(state[0]), T.Cast("int32", total)
                )
            spot = T.shfl_sync(spot, 0)
            while T.any_sync(hits[0] != u(0)) != 0:
                some = T.Cast("uint32", T.ballot_sync(hits[0] != u(0)))
                if hits[0] != u(0):
                    rest = hits[0] & (hits[0] - u(1))
                    j = T.Cast("uint32", T.__ffs(T.Cast("int32", hits[0])) - 1)
                    before = some & ((u(1) << T.Cast("uint32", lane)) - u(1))
                    mine = spot + T.Cast("int32", T.popcount(before))
                    if mine < limit:
                        bits = T.call_extern("uint32", "ak_pick", T.address_of(x[0]), j)
                        q = T.Cast("int32", j & u(WORDS - 1))
                        e = q % 4 * 2 + T.Cast("int32", j >> u(4)) if narrow else q % 4
                        keys[mine] = key_of(bits)
                        places[mine] = block * BLOCK + half * HALF + q // 4 * (NT * E) + tid * E + e
                    else:
                        hits[1] = hits[1] | (hits[0] ^ rest)
                    hits[0] = rest
                spot = spot + T.Cast("int32", T.popcount(some))

    return SimpleNamespace(
        bounds=bounds,
        visits=visits,
        set_threshold=set_threshold,
        load=load,
        find_valid=find_valid,
        find_hits=find_hits,
        append=append,
    )
