"""The TileLang programs of topk on NVIDIA GPUs; cuda.py plans and launches them.

``select`` gives a CTA one row, or one of ``splits`` random shares of a row; ``merge`` joins shares.
Candidates are (key, place) pairs in shared memory: ``key`` orders as the policy orders values, the
place counts from the 16-byte boundary at or before the row's first candidate, so that it orders
as indices do and addresses of whole vectors are aligned for any stride.
"""

from dataclasses import dataclass
from typing import Any

from topk.radix_select.cuda_source import source

WARP = 32
PLACE_BITS = 24
LAST_PLACE = (1 << PLACE_BITS) - 1
NOWHERE = 0x7FFFFFFF
TIES = 32
"""Candidates that are ranked one by one rather than by more digits."""
ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2
HAS_BEGIN, HAS_END, HAS_OFFSET, HAS_PAGES, HAS_VALUES = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Format:
    """How a dtype is laid out and ordered.

    Args:
        word: integer type of one element.
        bits: its width.
        per_vector: elements of a 16-byte load.
        vectors: loads a thread has in flight for half a block.
        inf: bits of +inf.
    """

    word: str
    bits: int
    per_vector: int
    vectors: int
    inf: int


FORMATS = {
    "bfloat16": Format("int16", 16, 8, 4, 0x7F80),
    "float16": Format("int16", 16, 8, 4, 0x7C00),
    "float32": Format("int32", 32, 4, 4, 0x7F800000),
}


def block_elements(dtype: str, threads: int) -> int:
    """Elements of a row visited between two looks at the order: two halves."""
    f = FORMATS[dtype]
    return 2 * f.vectors * f.per_vector * threads


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
    from tilelang import language as T

    f = FORMATS[dtype]
    NT, C, E, U = threads, capacity, f.per_vector, f.vectors
    WORDS, HALF = 4 * U, NT * E * U
    BLOCK = 2 * HALF
    SIGN, ONES = 1 << (f.bits - 1), (1 << f.bits) - 1
    INF_KEY, NAN_KEY = f.inf | SIGN, ONES - 1
    SETS = 8
    narrow = f.bits == 16
    itype = "int64" if wide else "int32"
    u = lambda n: T.Cast("uint32", T.int64(n)) if n > 0x7FFFFFFF else T.uint32(n)  # noqa: E731
    # Equality with an unsigned constant is solved as an equation, whose negative it cannot hold.
    is_ = lambda x, n: (x ^ u(n)) == u(0)  # noqa: E731
    code = source(dtype)

    def key_of(bits):
        """Canonical order: NaN on top, -0 as +0."""
        magnitude = bits & u(ONES >> 1)
        flipped = T.if_then_else((bits & u(SIGN)) != 0, (~bits) & u(ONES), bits | u(SIGN))
        some = T.if_then_else(is_(bits, SIGN), u(SIGN), flipped)
        return T.if_then_else(T.Cast("int32", magnitude) > f.inf, u(NAN_KEY), some)

    def value_of(key):
        """Bits of a value with that key."""
        return T.if_then_else((key & u(SIGN)) != 0, key & u(ONES >> 1), (~key) & u(ONES))

    def packed(bits):
        return bits | (bits << u(16)) if narrow else bits

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

    def reached(key):
        """What `not <=` makes of "at or above this key"; NaN as a limit lets everything pass."""
        before = T.if_then_else(is_(key, SIGN), u(SIGN - 2), (key - u(1)) & u(ONES))
        over = T.Cast("int64", key) > INF_KEY
        return packed(T.if_then_else(over, u(f.inf), value_of(before)))

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

    @T.macro
    def tally(w, state, turns, tid):
        # Sums of two words over the CTA. Three sets of counters take turns, so that one barrier
        # is enough: what is cleared now was read before the last one.
        here = SETS + 2 * turns[0]
        turns[0] = T.if_then_else(turns[0] == 2, 0, turns[0] + 1)
        for i in (0, 1):
            w[i] = T.call_extern("uint32", "ak_sum", w[i])
        if tid % WARP == 0:
            for i in (0, 1):
                T.call_extern("void", "ak_add", T.address_of(state[here + i]), w[i])
        if tid == 0:
            state[SETS + 2 * turns[0]] = 0
            state[SETS + 2 * turns[0] + 1] = 0
        T.sync_threads()
        for i in (0, 1):
            w[i] = T.Cast("uint32", state[here + i])

    @T.macro
    def quarter(lo, hi, at):
        # Three keys between lo and hi.
        part = T.max((hi - lo) >> u(2), u(1))
        for i in (0, 1, 2):
            at[i] = T.min(lo + part * u(i + 1), hi)

    @T.macro
    def narrow_down(w, base, k, at, r, c):
        # r: lo, hi; c: candidates at or above each. At least k are at or above lo.
        if base + T.Cast("int32", w[1]) >= k:
            r[0] = at[2]
            c[0] = base + T.Cast("int32", w[1])
        else:
            r[1] = at[2]
            c[1] = base + T.Cast("int32", w[1])
            if base + T.Cast("int32", w[0] >> u(16)) >= k:
                r[0] = at[1]
                c[0] = base + T.Cast("int32", w[0] >> u(16))
            else:
                r[1] = at[1]
                c[1] = base + T.Cast("int32", w[0] >> u(16))
                if base + T.Cast("int32", w[0] & u(0xFFFF)) >= k:
                    r[0] = at[0]
                    c[0] = base + T.Cast("int32", w[0] & u(0xFFFF))
                else:
                    r[1] = at[0]
                    c[1] = base + T.Cast("int32", w[0] & u(0xFFFF))

    @T.macro
    def find_floor(x0, x1, state, turns, pivot, r, c, k, room, tid, valid):
        # A key that k to k + room elements of the first block reach, counted in registers.
        w = T.alloc_local((2,), "uint32")
        at = T.alloc_local((3,), "uint32")
        r[0] = u(0)
        r[1] = u(NAN_KEY)
        c[0] = k + room + 1
        c[1] = 0
        while T.And(r[1] - r[0] > u(1), c[0] - k > room):
            quarter(r[0], r[1], at)
            w[0] = u(0)
            w[1] = u(0)
            for i in (0, 1, 2):
                limit = reached(at[i])
                some = T.call_extern("uint32", "ak_all", T.address_of(x0[0]), limit) & valid[0]
                more = T.call_extern("uint32", "ak_all", T.address_of(x1[0]), limit) & valid[1]
                number = T.Cast("uint32", T.popcount(some) + T.popcount(more))
                w[i // 2] = w[i // 2] + (number << u(16 * (i % 2)))
            tally(w, state, turns, tid)
            narrow_down(w, 0, k, at, r, c)
        pivot[0] = r[0]
        pivot[1] = u(0)

    @T.macro
    def find_pivot(keys, places, state, turns, pivot, top, v, r, c, n, k, spare, few, tid):
        # The k-th best of n candidates, from the last pivot up, by counting: until those at or
        # above a key are k and at most `spare` more, or those between two keys at most `few`.
        # Candidates from pivot to top are undecided: v[1] of them, of which v[0] are wanted.
        w = T.alloc_local((2,), "uint32")
        at = T.alloc_local((3,), "uint32")
        w[0] = u(0)
        w[1] = u(0)
        for i in T.serial(T.ceildiv(n, NT)):
            if i * NT + tid < n:
                w[0] = T.max(w[0], keys[i * NT + tid])
        here = SETS + 2 * turns[0]
        turns[0] = T.if_then_else(turns[0] == 2, 0, turns[0] + 1)
        T.call_extern("void", "ak_most", T.address_of(state[here]), w[0])
        if tid == 0:
            state[SETS + 2 * turns[0]] = 0
            state[SETS + 2 * turns[0] + 1] = 0
        T.sync_threads()
        r[0] = pivot[0]
        r[1] = T.Cast("uint32", state[here]) + u(1)
        c[0] = n
        c[1] = 0
        while T.And(T.And(r[1] - r[0] > u(1), c[0] - k > spare), c[0] - c[1] > few):
            quarter(r[0], r[1], at)
            w[0] = u(0)
            w[1] = u(0)
            for i in T.serial(T.ceildiv(n, NT)):
                if i * NT + tid < n:
                    key = keys[i * NT + tid]
                    w[0] = w[0] + T.if_then_else(key >= at[0], u(1), u(0))
                    w[0] = w[0] + T.if_then_else(key >= at[1], u(1 << 16), u(0))
                    w[1] = w[1] + T.if_then_else(key >= at[2], u(1), u(0))
            tally(w, state, turns, tid)
            narrow_down(w, 0, k, at, r, c)
        pivot[0] = r[0]
        pivot[1] = u(0)
        top[0] = r[1]
        top[1] = u(LAST_PLACE + 1)
        if T.And(c[0] - k > spare, c[0] - c[1] > few):
            # Equal keys: the earlier place is the larger number.
            above = T.alloc_var("int32", init=0)
            above = c[1]
            r[0] = u(0)
            r[1] = u(LAST_PLACE + 1)
            while T.And(T.And(r[1] - r[0] > u(1), c[0] - k > spare), c[0] - c[1] > few):
                quarter(r[0], r[1], at)
                w[0] = u(0)
                w[1] = u(0)
                for i in T.serial(T.ceildiv(n, NT)):
                    if i * NT + tid < n:
                        if keys[i * NT + tid] == pivot[0]:
                            late = T.Cast("uint32", LAST_PLACE - places[i * NT + tid])
                            w[0] = w[0] + T.if_then_else(late >= at[0], u(1), u(0))
                            w[0] = w[0] + T.if_then_else(late >= at[1], u(1 << 16), u(0))
                            w[1] = w[1] + T.if_then_else(late >= at[2], u(1), u(0))
                tally(w, state, turns, tid)
                narrow_down(w, above, k, at, r, c)
            pivot[1] = r[0]
            top[1] = r[1]
        v[0] = k - c[1]
        v[1] = c[0] - c[1]

    @T.macro
    def keep_best(keys, places, tied, state, pivot, top, v, n, exact, tid):
        # What reaches the pivot moves to the front. Where `exact`, undecided candidates that are
        # not all wanted go to a list, and each counts those before it.
        lane = tid % WARP
        k4 = T.alloc_local((4,), "uint32")
        p4 = T.alloc_local((4,), "int32")
        votes = T.alloc_local((4,), "uint32")
        if tid == 0:
            state[0] = 0
            state[4] = 0
        T.sync_threads()
        for c in T.serial(T.ceildiv(n, 4 * NT)):
            for q in tuple(range(4)):
                i = c * (4 * NT) + q * NT + tid
                k4[q] = u(0)
                p4[q] = LAST_PLACE
                if i < n:
                    k4[q] = keys[i]
                    p4[q] = places[i]
                late = T.Cast("uint32", LAST_PLACE - p4[q])
                stays = T.alloc_var("int32", init=0)
                stays = 0
                if T.And(
                    i < n,
                    T.Or(k4[q] > pivot[0], T.And(k4[q] == pivot[0], late >= pivot[1])),
                ):
                    stays = 1
                if exact:
                    undecided = T.And(k4[q] < top[0], late < top[1])
                    if T.And(T.And(stays == 1, v[0] != v[1]), undecided):
                        stays = 0
                        tie = T.call_extern("int32", "ak_take", T.address_of(state[4]), 1)
                        tied[tie] = k4[q]
                        tied[TIES + tie] = T.Cast("uint32", p4[q])
                votes[q] = T.Cast("uint32", T.ballot_sync(stays))
            # All have read; what is written lies at or before what has been read.
            T.sync_threads()
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
                if ((votes[q] >> T.Cast("uint32", lane)) & u(1)) != u(0):
                    mine = spot + T.Cast("int32", T.popcount(votes[q] & below))
                    keys[mine] = k4[q]
                    places[mine] = p4[q]
                spot = spot + T.Cast("int32", T.popcount(votes[q]))
        T.sync_threads()
        if exact:
            if T.And(v[0] != v[1], tid < v[1]):
                rank = T.alloc_var("int32", init=0)
                rank = 0
                key = tied[tid]
                place = tied[TIES + tid]
                for j in T.serial(v[1]):
                    before = T.And(tied[j] == key, tied[TIES + j] < place)
                    if T.Or(tied[j] > key, before):
                        rank = rank + 1
                if rank < v[0]:
                    keys[state[0] + rank] = key
                    places[state[0] + rank] = T.Cast("int32", place)
            T.sync_threads()

    @T.macro
    def sort(keys, places, n, by_value, tid):
        size = T.alloc_var("int32", init=2)
        while size < n:
            size = size * 2
        for i in T.serial(T.ceildiv(size, NT)):
            c = i * NT + tid
            if c >= n and c < size:
                keys[c] = u(0)
                places[c] = NOWHERE
        run = T.alloc_var("int32", init=2)
        while run <= size:
            step = T.alloc_var("int32", init=0)
            step = run // 2
            while step > 0:
                T.sync_threads()
                for i in T.serial(T.ceildiv(size // 2, NT)):
                    c = i * NT + tid
                    if c < size // 2:
                        a = 2 * c - (c & (step - 1))
                        z = a + step
                        ka = keys[a]
                        kz = keys[z]
                        pa = places[a]
                        pz = places[z]
                        by_place = T.Or(by_value == 0, ka == kz)
                        wrong = T.if_then_else(by_place, pz < pa, kz > ka)
                        if wrong == ((a & run) == 0):
                            keys[a] = kz
                            keys[z] = ka
                            places[a] = pz
                            places[z] = pa
                step = step // 2
            run = run * 2
        T.sync_threads()

    @T.macro
    def finish(
        src, values, indices, offset, pages, keys, places, n, b, base, row, topk, order, flags,
        values_stride, indices_stride, pages_stride, page_size, index_fill, value_fill, tid,
    ):  # fmt: skip
        if order != ORDER_NONE and n > 1:
            sort(keys, places, n, T.if_then_else(order == ORDER_VALUE, 1, 0), tid)
        for i in T.serial(T.ceildiv(topk, NT)):
            c = i * NT + tid
            if c < topk:
                index = T.alloc_var("int64", init=0)
                value = T.alloc_var(f.word, init=0)
                index = index_fill
                value = T.Cast(f.word, value_fill)
                if c < n:
                    here = places[c] + b[2]
                    index = T.Cast("int64", here)
                    if (flags & HAS_VALUES) != 0:
                        value = src[base + T.Cast("int64", here)]
                    if (flags & HAS_PAGES) != 0:
                        page = pages[
                            T.Cast("int64", row) * pages_stride + T.truncdiv(here, page_size)
                        ]
                        index = T.Cast("int64", page) * page_size + T.truncmod(here, page_size)
                    if (flags & HAS_OFFSET) != 0:
                        index = index + T.Cast("int64", offset[row])
                indices[T.Cast("int64", row) * indices_stride + c] = T.Cast(itype, index)
                if (flags & HAS_VALUES) != 0:
                    values[T.Cast("int64", row) * values_stride + c] = value

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
                        keep_best(keys, places, tied, state, pivot, top, v, limit, False, tid)
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
                keep_best(keys, places, tied, state, pivot, top, v, n, True, tid)
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
                    keep_best(keys, places, tied, state, pivot, top, v, limit, False, tid)
                    passing(k4, p4, pivot, wanted, hits)
                    append_pairs(k4, p4, keys, places, state, limit, tid, hits)
                    full = T.syncthreads_or(hits[1] != u(0))
            n = T.alloc_var("int32", init=0)
            n = state[0]
            if n > topk:
                T.sync_threads()
                find_pivot(keys, places, state, turns, pivot, top, v, r2, c2, n, topk, 0, TIES, tid)
                keep_best(keys, places, tied, state, pivot, top, v, n, True, tid)
                n = topk
            finish(
                src, values, indices, offset, pages, keys, places, n, b, base, row, topk, order,
                flags, values_stride, indices_stride, pages_stride, page_size, index_fill,
                value_fill, tid,
            )  # fmt: skip

    return merge if role == "merge" else select
