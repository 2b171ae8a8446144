"""Selection among the candidates of the Ascend program: the best k, their order, the results."""

from types import SimpleNamespace

from topk.radix_select.ascend_program import (
    COUNT,
    KEY,
    LANES,
    LAST,
    LIMIT,
    LOWEST,
    MAX_TOPK,
    capacity,
)


def macros(word: str) -> SimpleNamespace:
    """``keep_best``, ``rank`` and ``results`` for candidates of rows of ``word``."""
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    K, C = MAX_TOPK, capacity(word)
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

    return SimpleNamespace(keep_best=keep_best, rank=rank, results=results)
