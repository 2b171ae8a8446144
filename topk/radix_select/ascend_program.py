"""The TileLang program of topk on the Ascend 950's vector cores; ascend.py launches it.

A vector core streams a row, or one of ``splits`` shares of it, through the Unified Buffer. There is
one program for 16-bit words and one for 32-bit words: k, the order of the results and the value
above which a word is NaN are arguments.

A page is looked at in full lanes of its words: two 16-bit words in the time of one. The filter
writes the places of what passes the threshold, exactly, ties included; few do, and only those are
fetched again, widened and put behind the candidates.

Candidates are (raw, at) pairs: the bits as they are in the row and the index. A key is the value as
an integer of the same order: sign and magnitude become two's complement, so that -0.0 equals 0.0,
and NaN is the largest.
"""

from typing import Any

LANES = 64
"""32-bit lanes of a vector register."""
MAX_ROW = 1 << 21
LAST = (1 << 24) - 1
"""Above every index."""
COUNT, KEY, LIMIT = 0, 8, 16
"""Where the number of candidates and the threshold (key, index below which equals pass) are."""
PAGE = {"uint16": 8192, "int32": 4096}
"""Elements of one copy, 16 KiB, by word."""
LOWEST = -(1 << 31)
"""Below every key."""
MAX_TOPK = 4096
INF = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000}
ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2


def limit(topk: int) -> int:
    """Candidates above which a selection keeps the best ``topk``."""
    return topk + max(topk, 2048)


def capacity(word: str) -> int:
    """Candidates the Unified Buffer holds: a page comes on top of the limit."""
    return limit(MAX_TOPK) + PAGE[word]


def max_pages(word: str) -> int:
    """Pages of the longest row; their order is in the Unified Buffer."""
    return MAX_ROW // PAGE[word]


def ub_bytes(word: str) -> int:
    """Unified Buffer a program takes: candidates, results, a page and the places of its hits, the
    order, state, the number of hits, a range."""
    page = (4 if word == "int32" else 2) * PAGE[word]
    pairs = 8 * capacity(word) + 8 * MAX_TOPK
    return pairs + 2 * page + 4 * max_pages(word) + 4 * LANES + 32 + 32


def program(word: str, num_cores: int) -> Any:
    """One TileLang program.

    Args:
        word: of the input, "uint16" or "int32".
        num_cores: vector cores.

    A job is a row or a share of one: ``ranges[job]`` holds the first candidate, one past the last,
    the entries of the visit order and where its pages start. The rows of ``raws_gm`` and ``ats_gm``
    are as long as candidates are wanted.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    from topk.radix_select.ascend_select import macros

    K, C, TILE = MAX_TOPK, capacity(word), PAGE[word]
    wide = word == "int32"
    magnitude = 0x7FFFFFFF if wide else 0x7FFF
    select_of = macros(word)
    keep_best, rank, results = select_of.keep_best, select_of.rank, select_of.results
    W, U, L = ("int32", "uint32", LANES) if wide else ("int16", "uint16", 2 * LANES)

    @T.macro
    def find_hits(tile, hits, found, width, first, last, key_t, early, inf):
        # Places of what passes the threshold, in lanes of the row's words.
        with T.SimdVF():
            count = S.alloc_local((1,), W)
            count[0] = S.vdup(0, W)
            lanes = S.vci(0, W)
            zero = S.vdup(0, W)
            most = S.vdup(magnitude, W)
            for j in T.serial(T.ceildiv(width, L)):
                raw = T.reinterpret(S.vld(tile[j * L]), f"{W}x{L}")
                at = S.vadds(lanes, T.Cast(W, j * L))
                reached = S.vcmps(at, T.Cast(W, first), op="ge")
                inside = S.vcmps(at, T.Cast(W, last), mask=reached, op="lt")
                size = S.vand(raw, most)
                negative = S.vcmps(raw, T.Cast(W, 0), op="lt")
                ordered = S.vsel(S.vsub(zero, size), size, negative)
                key = S.vsel(most, ordered, S.vcmps(size, T.Cast(W, inf), op="gt"))
                above = S.vcmps(key, T.Cast(W, key_t), mask=inside, op="gt")
                equal = S.vcmps(key, T.Cast(W, key_t), mask=inside, op="eq")
                ties = S.vcmps(at, T.Cast(W, early), mask=equal, op="lt")
                passing = S.por(above, ties, inside)
                place = T.reinterpret(S.vadd(count[0], S.vusqz(passing, W)), f"{U}x{L}")
                S.vscatter(at, T.access_ptr(hits[0], "w", extent=TILE), place, passing)
                ones = S.vdup(1, W, mask=passing)
                count[0] = S.vadd(count[0], S.vdupv(T.reinterpret(S.vcadd(ones), f"{W}x{L}")))
            S.vsts(found[0], count[0], dist="ONEPT_B32" if wide else "ONEPT_B16")

    @T.macro
    def find_above(tile, hits, found, least, inf):
        # The same for a whole page and a positive threshold that all of its ties pass, or none:
        # such keys are the words themselves, and words of negative NaN are above all as unsigned.
        with T.SimdVF():
            count = S.alloc_local((1,), W)
            count[0] = S.vdup(0, W)
            lanes = S.vci(0, W)
            full = S.pset(32 if wide else 16, "PAT_ALL")
            for j in T.serial(TILE // L):
                raw = S.vld(tile[j * L])
                word_s = T.reinterpret(raw, f"{W}x{L}")
                word_u = T.reinterpret(raw, f"{U}x{L}")
                nan = S.vcmps(word_u, T.Cast(U, inf) + T.Cast(U, magnitude) + T.Cast(U, 1), op="gt")
                passing = S.por(S.vcmps(word_s, T.Cast(W, least), op="ge"), nan, full)
                place = T.reinterpret(S.vadd(count[0], S.vusqz(passing, W)), f"{U}x{L}")
                at = S.vadds(lanes, T.Cast(W, j * L))
                S.vscatter(at, T.access_ptr(hits[0], "w", extent=TILE), place, passing)
                ones = S.vdup(1, W, mask=passing)
                count[0] = S.vadd(count[0], S.vdupv(T.reinterpret(S.vcadd(ones), f"{W}x{L}")))
            S.vsts(found[0], count[0], dist="ONEPT_B32" if wide else "ONEPT_B16")

    @T.macro
    def append(tile, hits, raws, ats, state, start, n, count):
        # Hits join the candidates, 64 a turn, by their places in the page.
        with T.SimdVF():
            lanes = S.vci(0, "int32")
            for i in T.serial(T.ceildiv(n, LANES)):
                there = S.vadds(lanes, i * LANES)
                inside = S.vcmps(there, n, op="lt")
                if wide:
                    spot = S.vld(hits[i * LANES])
                    raw = S.vgather2(
                        T.access_ptr(tile[0], "r", extent=TILE),
                        T.reinterpret(spot, "uint32x64"), inside,
                    )  # fmt: skip
                    at = S.vadds(spot, start)
                else:
                    # An index of 16 bits a lane: the upper half of the lanes is off.
                    spot = T.reinterpret(S.vld(hits[i * LANES]), "uint16x128")
                    found = S.vgather2(
                        T.access_ptr(tile[0], "r", extent=TILE), spot,
                        S.update_mask(n - i * LANES, 16),
                    )  # fmt: skip
                    raw = T.reinterpret(S.vunpack(found, 0), "int32x64")
                    at = S.vadds(T.reinterpret(S.vunpack(spot, 0), "int32x64"), start)
                place = T.reinterpret(S.vadds(there, count), "uint32x64")
                S.vscatter(raw, T.access_ptr(raws[0], "w", extent=C), place, inside)
                S.vscatter(at, T.access_ptr(ats[0], "w", extent=C), place, inside)
            S.vsts(state[COUNT], S.vdup(n + count, "int32"), dist="ONEPT_B32")

    @T.macro
    def reset(state):
        with T.SimdVF():
            S.vsts(state[COUNT], S.vdup(0, "int32"), dist="ONEPT_B32")
            S.vsts(state[KEY], S.vdup(LOWEST, "int32"), dist="ONEPT_B32")
            S.vsts(state[LIMIT], S.vdup(0, "int32"), dist="ONEPT_B32")

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
            hits = T.alloc_shared((TILE,), W)
            found = T.alloc_shared((32 // (4 if wide else 2),), W)
            visit = T.alloc_shared((max_pages(word),), "int32")
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
                        key_t = state[KEY] if wide else T.max(state[KEY], -(1 << 15))
                        early = T.max(T.min(state[LIMIT] - start, TILE), 0)
                        whole = (start >= low) & (start + TILE <= high)
                        one_key = (early == 0) | (early == TILE)
                        if whole & one_key & (key_t > 0) & (key_t < magnitude):
                            least = key_t + T.if_then_else(early == 0, 1, 0)
                            find_above(tile, hits, found, least, inf)
                        else:
                            find_hits(
                                tile, hits, found, width, T.max(low - start, 0),
                                T.min(high - start, TILE), key_t, early, inf,
                            )  # fmt: skip
                        n = T.Cast("int32", found[0])
                        append(tile, hits, raws, ats, state, start, n, state[COUNT])
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
