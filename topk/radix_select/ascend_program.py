"""The TileLang program of topk on the Ascend 950's vector cores; ascend.py launches it.

A vector core streams a row, or one of ``splits`` shares of it, through the Unified Buffer. There is
one program for 16-bit words and one for 32-bit words: k, the order of the results and the value
above which a word is NaN are arguments.
Candidates are (raw, at) pairs: the bits as they are in the row and the index. A key is the value as
an integer of the same order: sign and magnitude become two's complement, so that -0.0 equals 0.0,
and NaN is the largest.
"""

from typing import Any

LANES = 64
"""32-bit lanes of a vector register."""
TILE = 2048
"""Elements of one copy: a page."""
LAST = (1 << 24) - 1
COUNT, KEY, LIMIT = 0, 8, 16
"""Where the number of candidates and the threshold (key, index below which equals pass) are."""
LOWEST = -(1 << 31)
MAX_TOPK = 4096
MAX_TILES = 1024
"""Pages of the longest row; the visit order is in the Unified Buffer."""
INF = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000}
ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2


def limit(topk: int) -> int:
    """Candidates above which a selection keeps the best ``topk``."""
    return topk + max(topk, TILE)


def capacity() -> int:
    """Candidates the Unified Buffer holds: a page comes on top of the limit."""
    return limit(MAX_TOPK) + TILE


def ub_bytes(word: str) -> int:
    """Unified Buffer a program takes: candidates, results, a page, the order, state, a range."""
    page = (4 if word == "int32" else 2) * TILE
    return 8 * capacity() + 8 * MAX_TOPK + page + 4 * MAX_TILES + 4 * LANES + 32


def program(word: str, num_cores: int) -> Any:
    """One TileLang program.

    Args:
        word: of the input, "uint16" or "int32".
        num_cores: vector cores.

    A job is a row or a share of one: ``ranges[job]`` holds the first candidate, one past the last,
    the entries of the visit order and where its tiles start. The rows of ``raws_gm`` and ``ats_gm``
    are as long as candidates are wanted.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    K, C = MAX_TOPK, capacity()
    wide = word == "int32"
    digits = 4 if wide else 2
    sign, magnitude = (1 << 31, 0x7FFFFFFF) if wide else (1 << 15, 0x7FFF)

    @T.macro
    def keys_of(raw, inf):
        # Two's complement of sign and magnitude; NaN above everything.
        size = S.vand(raw, S.vdup(magnitude, "int32"))
        negative = S.vcmps(raw, 0, op="lt") if wide else S.vcmps(raw, sign, op="ge")
        ordered = S.vsel(S.vsub(S.vdup(0, "int32"), size), size, negative)
        return S.vsel(S.vdup(magnitude, "int32"), ordered, S.vcmps(size, inf, op="gt"))

    @T.macro
    def append(raw, at, key, inside, key_t, limit_t, count, raws, ats):
        above = S.vcmp(key, key_t, mask=inside, op="gt")
        equal = S.vcmp(key, key_t, mask=inside, op="eq")
        early = S.vcmp(at, limit_t, mask=equal, op="lt")
        passing = S.por(above, early, inside)
        place = S.vadd(count[0], S.vusqz(passing, "int32"))
        spot = T.reinterpret(place, "uint32x64")
        S.vscatter(raw, T.access_ptr(raws[0], "w", extent=C), spot, passing)
        S.vscatter(at, T.access_ptr(ats[0], "w", extent=C), spot, passing)
        ones = S.vdup(1, "int32", mask=passing)
        count[0] = S.vadd(count[0], S.vdupv(S.vcadd(ones)))

    @T.macro
    def filter_tile(tile, raws, ats, state, start, low, high, inf):
        with T.SimdVF():
            count = S.alloc_local((1,), "int32")
            count[0] = S.vld(state[COUNT], dist="BRC_B32")
            key_t = S.vld(state[KEY], dist="BRC_B32")
            limit_t = S.vld(state[LIMIT], dist="BRC_B32")
            lanes = S.vci(0, "int32")
            for j in T.serial(TILE // LANES):
                if wide:
                    raw = S.vld(tile[j * LANES])
                else:
                    raw = T.reinterpret(S.vld(tile[j * LANES], dist="UNPK_B16"), "int32x64")
                at = S.vadds(lanes, start + j * LANES)
                reached = S.vcmps(at, low, op="ge")
                inside = S.vcmps(at, high, mask=reached, op="lt")
                append(raw, at, keys_of(raw, inf), inside, key_t, limit_t, count, raws, ats)
            S.vsts(state[COUNT], count[0], dist="ONEPT_B32")

    @T.macro
    def load(raws, ats, i, n, inf, raw, at, key):
        # 64 candidates; lanes behind the last one count as lowest of all.
        raw[0] = S.vld(raws[i * LANES])
        at[0] = S.vld(ats[i * LANES])
        inside = S.vcmps(S.vadds(S.vci(0, "int32"), i * LANES), n, op="lt")
        key[0] = S.vsel(keys_of(raw[0], inf), S.vdup(LOWEST, "int32"), inside)

    @T.macro
    def find_digit(raws, ats, n, topk, inf, pivot, by_place, shift, prefix, first, result):
        # Numbers outside the prefix saturate, so that the rank wanted stays the same; the digit is
        # how many of 256 values have no more than total - topk numbers up to them.
        upto = S.alloc_local((2,), "uint16")
        raw = S.alloc_local((1,), "int32")
        at = S.alloc_local((1,), "int32")
        key = S.alloc_local((1,), "int32")
        quarters = S.alloc_local((4,), "int32")
        total = S.alloc_local((1,), "int32")
        upto[0] = S.vdup(0, "uint16")
        upto[1] = S.vdup(0, "uint16")
        base = S.vdup(-128, "int32") if first else S.vshls(prefix[0], 8)
        last = S.vadds(base, 255)
        for i in T.serial(T.ceildiv(n, 4 * LANES)):
            for q in (0, 1, 2, 3):
                load(raws, ats, i * 4 + q, n, inf, raw, at, key)
                if by_place:
                    late = S.vsub(S.vdup(LAST, "int32"), at[0])
                    equal = S.vcmp(key[0], pivot[0], op="eq")
                    above = S.vcmp(key[0], pivot[0], op="gt")
                    other = S.vsel(S.vdup(LAST + 1, "int32"), S.vdup(-1, "int32"), above)
                    key[0] = S.vsel(late, other, equal)
                head = S.vshrs(key[0], shift) if shift else key[0]
                quarters[q] = S.vsub(S.vmin(S.vmax(head, base), last), base)
            low = S.vor(
                S.vpack(T.reinterpret(quarters[0], "uint32x64"), 0),
                S.vpack(T.reinterpret(quarters[1], "uint32x64"), 1),
            )
            high = S.vor(
                S.vpack(T.reinterpret(quarters[2], "uint32x64"), 0),
                S.vpack(T.reinterpret(quarters[3], "uint32x64"), 1),
            )
            octets = S.vor(S.vpack(low, 0), S.vpack(high, 1))
            S.chistv2(upto[0], octets, bin=0)
            S.chistv2(upto[1], octets, bin=1)
        others = T.ceildiv(n, 4 * LANES) * (4 * LANES) - topk
        most = S.vdup(T.Cast("uint16", others), "uint16")
        total[0] = S.vdup(0, "int32")
        for h in (0, 1):
            few = S.vcmp(upto[h], most, op="le")
            ones = S.vdup(1, "uint16", mask=few)
            total[0] = S.vadd(total[0], T.reinterpret(S.vcadd(ones), "int32x64"))
        result[0] = S.vadd(base, S.vdupv(total[0]))

    @T.macro
    def keep_best(raws, ats, state, n, topk, inf):
        # The best topk of n candidates move to the front; the worst of them is the threshold.
        with T.SimdVF():
            pivot = S.alloc_local((1,), "int32")
            late = S.alloc_local((1,), "int32")
            raw = S.alloc_local((1,), "int32")
            at = S.alloc_local((1,), "int32")
            key = S.alloc_local((1,), "int32")
            count = S.alloc_local((1,), "int32")
            pivot[0] = S.vdup(0, "int32")
            for d in tuple(range(digits)):
                shift = 8 * (digits - 1 - d)
                find_digit(raws, ats, n, topk, inf, pivot, False, shift, pivot, d == 0, pivot)
            late[0] = S.vdup(0, "int32")
            for d in (0, 1, 2):
                find_digit(
                    raws, ats, n, topk, inf, pivot, True, 16 - 8 * d, late, False, late
                )  # fmt: skip
            limit = S.vsub(S.vdup(LAST + 1, "int32"), late[0])
            count[0] = S.vdup(0, "int32")
            full = S.pset(32, "PAT_ALL")
            for i in T.serial(T.ceildiv(n, LANES)):
                load(raws, ats, i, n, inf, raw, at, key)
                above = S.vcmp(key[0], pivot[0], op="gt")
                equal = S.vcmp(key[0], pivot[0], op="eq")
                early = S.vcmp(at[0], limit, mask=equal, op="lt")
                stays = S.por(above, early, full)
                spot = T.reinterpret(S.vadd(count[0], S.vusqz(stays, "int32")), "uint32x64")
                # What is written lies at or before what has been read.
                S.vscatter(raw[0], T.access_ptr(raws[0], "w", extent=C), spot, stays)
                S.vscatter(at[0], T.access_ptr(ats[0], "w", extent=C), spot, stays)
                ones = S.vdup(1, "int32", mask=stays)
                count[0] = S.vadd(count[0], S.vdupv(S.vcadd(ones)))
            S.vsts(state[COUNT], count[0], dist="ONEPT_B32")
            S.vsts(state[KEY], pivot[0], dist="ONEPT_B32")
            # The worst survivor itself is not seen again; what equals it must come before it.
            S.vsts(state[LIMIT], limit, dist="ONEPT_B32")

    @T.macro
    def reset(state):
        with T.SimdVF():
            S.vsts(state[COUNT], S.vdup(0, "int32"), dist="ONEPT_B32")
            S.vsts(state[KEY], S.vdup(LOWEST, "int32"), dist="ONEPT_B32")
            S.vsts(state[LIMIT], S.vdup(0, "int32"), dist="ONEPT_B32")

    @T.macro
    def rank(raws, ats, raws_out, ats_out, n, inf, by_value):
        # A candidate's place is how many come before it; n * n / 64 compares.
        with T.SimdVF():
            raw = S.alloc_local((1,), "int32")
            at = S.alloc_local((1,), "int32")
            key = S.alloc_local((1,), "int32")
            place = S.alloc_local((1,), "int32")
            full = S.pset(32, "PAT_ALL")
            for i in T.serial(T.ceildiv(n, LANES)):
                load(raws, ats, i, n, inf, raw, at, key)
                place[0] = S.vdup(0, "int32")
                for j in T.serial(n):
                    other_at = S.vld(ats[j], dist="BRC_B32")
                    before = S.vcmp(other_at, at[0], op="lt")
                    if by_value:
                        other = keys_of(S.vld(raws[j], dist="BRC_B32"), inf)
                        above = S.vcmp(other, key[0], op="gt")
                        equal = S.vcmp(other, key[0], op="eq")
                        before = S.por(above, S.pand(equal, before, full), full)
                    place[0] = S.vadd(place[0], S.vdup(1, "int32", mask=before))
                inside = S.vcmps(S.vadds(S.vci(0, "int32"), i * LANES), n, op="lt")
                spot = T.reinterpret(place[0], "uint32x64")
                S.vscatter(raw[0], T.access_ptr(raws_out[0], "w", extent=K), spot, inside)
                S.vscatter(at[0], T.access_ptr(ats_out[0], "w", extent=K), spot, inside)

    @T.macro
    def results(raws, ats, raws_out, ats_out, n, topk, index_fill, value_fill):
        # Missing candidates become fill values.
        with T.SimdVF():
            for i in T.serial(T.ceildiv(topk, LANES)):
                inside = S.vcmps(S.vadds(S.vci(0, "int32"), i * LANES), n, op="lt")
                at = S.vld(ats[i * LANES])
                S.vsts(ats_out[i * LANES], S.vsel(at, S.vdup(index_fill, "int32"), inside))
                raw = S.vsel(S.vld(raws[i * LANES]), S.vdup(value_fill, "int32"), inside)
                S.vsts(raws_out[i * LANES], raw)

    rows, stride, num_draws = T.dynamic("rows"), T.dynamic("stride"), T.dynamic("num_draws")
    row_len, jobs, topk = T.dynamic("row_len"), T.dynamic("jobs"), T.dynamic("topk")

    @T.prim_func
    def select(
        src: T.StridedTensor((rows, row_len), (stride, 1), word),
        ranges: T.Tensor((jobs, 8), "int32"),
        draws: T.Tensor((num_draws,), "int32"),
        raws_gm: T.Tensor((jobs, topk), "int32"),
        ats_gm: T.Tensor((jobs, topk), "int32"),
        splits: T.int32,
        order: T.int32,
        most: T.int32,
        inf: T.int32,
        index_fill: T.int32,
        value_fill: T.int32,
    ):
        with T.Kernel(num_cores) as core:
            raws = T.alloc_shared((C,), "int32")
            ats = T.alloc_shared((C,), "int32")
            raws_out = T.alloc_shared((K,), "int32")
            ats_out = T.alloc_shared((K,), "int32")
            tile = T.alloc_shared((TILE,), word)
            visit = T.alloc_shared((MAX_TILES,), "int32")
            state = T.alloc_shared((LANES,), "int32")
            bounds = T.alloc_shared((8,), "int32")
            for r in T.serial(T.ceildiv(jobs - core, num_cores)):
                job = r * num_cores + core
                row = T.truncdiv(job, splits)
                T.copy(ranges[job, :], bounds)
                low = bounds[0]
                high = bounds[1]
                entries = bounds[2]
                first = bounds[3]
                reset(state)
                T.copy(draws[entries : entries + entries], visit[:entries])
                for e in T.serial(entries):
                    start = first + visit[e] * TILE
                    if start < high:
                        width = T.min(TILE, row_len - start)
                        T.copy(src[row, start : start + width], tile[:width])
                        filter_tile(tile, raws, ats, state, start, low, high, inf)
                    # After the last page, with more candidates than are wanted.
                    if state[COUNT] > T.if_then_else(e < entries - 1, most, topk):
                        keep_best(raws, ats, state, state[COUNT], topk, inf)
                if order == ORDER_NONE:
                    results(
                        raws, ats, raws_out, ats_out, state[COUNT], topk, index_fill, value_fill
                    )  # fmt: skip
                else:
                    if order == ORDER_VALUE:
                        rank(raws, ats, raws_out, ats_out, state[COUNT], inf, True)
                    else:
                        rank(raws, ats, raws_out, ats_out, state[COUNT], inf, False)
                    results(
                        raws_out, ats_out, raws_out, ats_out, state[COUNT], topk, index_fill,
                        value_fill,
                    )  # fmt: skip
                T.copy(raws_out[:topk], raws_gm[job, :])
                T.copy(ats_out[:topk], ats_gm[job, :])

    return select
