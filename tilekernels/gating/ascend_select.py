"""The k best of a row on the Ascend 950's vector cores, in TileLang: a column of registers a lane.

A row of up to ``MAX_REGISTERS * 64`` scores sits in registers: lane l of register j holds score
64 j + l. Every lane sorts its column, larger first and then smaller index first, so that a round of
arg-max looks at the top register only: the largest key, the smallest index among its equals, and
the winning lane moves up by one. Longer rows keep their keys in the Unified Buffer, and a round
walks over them.

Keys are the scores as integers of the same order, with one value below all of them for what is
taken and for padding: -inf is an ordinary score, NaN becomes -inf, -0.0 becomes 0.0.
"""

from types import SimpleNamespace
from typing import Any

LANES = 64
"""32-bit lanes of a vector register."""
MAX_REGISTERS = 8
"""Score registers of a row; as many hold indices, and there are 32."""
TAKEN = -(1 << 31)
MINUS_INF_KEY = -0x7F800001
LARGEST = (1 << 31) - 1


def registers_of(num_experts: int) -> int:
    """Registers of a row."""
    return -(-num_experts // LANES)


def selection(num_experts: int, num_topk: int, words: int) -> Any:
    """Macros over rows of scores in the Unified Buffer, whole registers long.

    Args:
        words: 32-bit words of an index in the result, 1 or 2; the upper one of 2 stays 0.

    Returns:
        A namespace: ``load_keys(scores, row, first, key, index)``, ``sort_columns(first, key,
        index)`` and ``take(k, first, key, index, result)`` for rows in registers from number
        ``first`` on; ``make_keys(scores, row, keys)`` and ``take_wide(k, keys, winner, result)``
        for long ones. ``result[0]`` gets index k in lane ``words * k``.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K = num_experts, num_topk
    registers = registers_of(E)
    # A column is only as deep as places are wanted from it.
    depth = min(registers, K)

    @T.macro
    def key_of(score):
        # Adding 0.0 makes -0.0 equal to 0.0.
        value = S.vadds(score, 0.0)
        bits = T.reinterpret(value, "int32x64")
        flipped = S.vxor(bits, S.vdup(LARGEST, "int32"))
        ordered = S.vsel(flipped, bits, S.vcmps(bits, 0, op="lt"))
        return S.vsel(ordered, S.vdup(MINUS_INF_KEY, "int32"), S.vcmp(value, value, op="eq"))

    @T.macro
    def load_keys(scores_ub, row, first, key, index):
        for j in tuple(range(registers)):
            key[first + j] = key_of(S.vld(scores_ub[row, j * LANES]))
            index[first + j] = S.vci(j * LANES, "int32")
            if (j + 1) * LANES > E:
                inside = S.vcmps(index[first + j], E, op="lt")
                key[first + j] = S.vsel(key[first + j], S.vdup(TAKEN, "int32"), inside)

    @T.macro
    def sort_columns(first, key, index):
        # Exchanges of neighbours, and of strictly ordered ones only, keep equals in index order.
        for turn in tuple(range(registers)):
            for a in tuple(range(first + turn % 2, first + registers - 1, 2)):
                swap = S.vcmp(key[a + 1], key[a], op="gt")
                larger = S.vsel(key[a + 1], key[a], swap)
                smaller = S.vsel(key[a], key[a + 1], swap)
                before = S.vsel(index[a + 1], index[a], swap)
                after = S.vsel(index[a], index[a + 1], swap)
                key[a] = larger
                key[a + 1] = smaller
                index[a] = before
                index[a + 1] = after

    @T.macro
    def take(k, first, key, index, result):
        lanes = S.vci(0, "int32")
        best = S.vdupv(S.vcmax(key[first]))
        equals = S.vcmp(key[first], best, op="eq")
        at = S.vsel(index[first], S.vdup(LARGEST, "int32"), equals)
        winner = S.vdupv(S.vcmin(at))
        result[0] = S.vsel(winner, result[0], S.vcmps(lanes, words * k, op="eq"))
        hit = S.vcmp(index[first], winner, op="eq")
        for j in tuple(range(first, first + depth - 1)):
            key[j] = S.vsel(key[j + 1], key[j], hit)
            index[j] = S.vsel(index[j + 1], index[j], hit)
        last = first + depth - 1
        key[last] = S.vsel(S.vdup(TAKEN, "int32"), key[last], hit)

    @T.macro
    def make_keys(scores_ub, row, keys_ub):
        for j in T.serial(registers):
            found = key_of(S.vld(scores_ub[row, j * LANES]))
            inside = S.vcmps(S.vadds(S.vci(0, "int32"), j * LANES), E, op="lt")
            S.vsts(keys_ub[j * LANES], S.vsel(found, S.vdup(TAKEN, "int32"), inside))

    @T.macro
    def take_wide(k, keys_ub, winner, result):
        # One walk takes the last winner out and finds, in every lane, the best that is left.
        largest, taken = S.vdup(LARGEST, "int32"), S.vdup(TAKEN, "int32")
        best = S.alloc_local((1,), "int32")
        best_index = S.alloc_local((1,), "int32")
        best[0] = taken
        best_index[0] = largest
        S.mem_bar("VST_VLD")
        for j in T.serial(registers):
            index = S.vadds(S.vci(0, "int32"), j * LANES)
            left = S.vsel(taken, S.vld(keys_ub[j * LANES]), S.vcmp(index, winner[0], op="eq"))
            S.vsts(keys_ub[j * LANES], left)
            better = S.vcmp(left, best[0], op="gt")
            best[0] = S.vsel(left, best[0], better)
            best_index[0] = S.vsel(index, best_index[0], better)
        top = S.vdupv(S.vcmax(best[0]))
        at = S.vsel(best_index[0], largest, S.vcmp(best[0], top, op="eq"))
        winner[0] = S.vdupv(S.vcmin(at))
        result[0] = S.vsel(winner[0], result[0], S.vcmps(S.vci(0, "int32"), words * k, op="eq"))

    return SimpleNamespace(
        load_keys=load_keys,
        sort_columns=sort_columns,
        take=take,
        make_keys=make_keys,
        take_wide=take_wide,
    )
