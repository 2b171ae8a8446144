"""topk_gate on the Ascend 950's vector cores, in TileLang: a column of registers a lane.

A row of up to ``MAX_REGISTERS * 64`` scores sits in registers: lane l of register j holds score
64 j + l. Every lane sorts its column, larger first and then smaller index first, so that a round of
arg-max looks at the top register only: the largest key, the smallest index among its equals, and
the winning lane moves up by one. Two rows at a time hide each other's latency.

Keys are the scores as integers of the same order, with one value below all of them for what is
taken and for padding: -inf is an ordinary score, NaN becomes -inf, -0.0 becomes 0.0.

Longer rows keep their keys in the Unified Buffer, and a round walks over them.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

LANES = 64
"""32-bit lanes of a vector register."""
MAX_REGISTERS = 8
"""Score registers of a row; as many hold indices, and there are 32."""
TILE_BYTES = 16 * 1024
"""Scores of one copy: long bursts, and tiles enough for every core."""
STAGES = 2
TAKEN = -(1 << 31)
MINUS_INF_KEY = -0x7F800001
LARGEST = (1 << 31) - 1


def supports(case: Case) -> Support:
    """Every legal shape whose row fits the Unified Buffer."""
    experts = int(case.params["num_experts"])
    most = MAX_WIDE_EXPERTS
    if experts > most:
        return Support(False, f"{experts} experts; the Unified Buffer holds {most} of a row")
    return Support(True)


MAX_WIDE_EXPERTS = UB_BYTES // (4 * (STAGES + 1)) // LANES * LANES - 16 * LANES
"""Score tiles of one row, twice, and their keys; the rest is room for the output."""


def run(scores: "torch.Tensor", num_topk: int, *, out: "torch.Tensor") -> None:
    """Fill ``out``, int64 (num_tokens, num_topk), from float32 (num_tokens, num_experts)."""
    emulated = out.device.type == "cpu"
    kernel(scores.shape[1], num_topk, _vector_cores(out), emulated)(scores, out)


@lru_cache(maxsize=256)
def kernel(num_experts: int, num_topk: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel of a shape; one for the NPU and one for the emulator."""
    import tilelang

    return tilelang.compile(prim_func(num_experts, num_topk, num_cores), target="ascend")


def _vector_cores(out: "torch.Tensor") -> int:
    if out.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(out.device).cube_core_num)


def rows_per_tile(num_experts: int) -> int:
    """Rows of one copy, an even number so that rows go in pairs."""
    registers = -(-num_experts // LANES)
    return max(2, min(32, TILE_BYTES // (4 * LANES * registers)) & ~1)


def prim_func(num_experts: int, num_topk: int, num_cores: int) -> Any:
    """The TileLang program: scores float32 (num_tokens, E) -> topk_idx int64 (num_tokens, K)."""
    if num_experts > MAX_REGISTERS * LANES:
        return _wide(num_experts, num_topk, num_cores)
    return _narrow(num_experts, num_topk, num_cores)


def _narrow(num_experts: int, num_topk: int, num_cores: int) -> Any:
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K = num_experts, num_topk
    registers = -(-E // LANES)
    block = rows_per_tile(E)
    pair = 2 if registers <= 4 else 1
    # A column is only as deep as places are wanted from it.
    depth = min(registers, K)
    pitch = -(-2 * K // 8) * 8
    N = T.dynamic("num_tokens")

    @T.macro
    def load_keys(scores_ub, row, first, key, index):
        largest = S.vdup(LARGEST, "int32")
        for j in tuple(range(registers)):
            # Adding 0.0 makes -0.0 equal to 0.0.
            value = S.vadds(S.vld(scores_ub[row, j * LANES]), 0.0)
            bits = T.reinterpret(value, "int32x64")
            flipped = S.vxor(bits, largest)
            ordered = S.vsel(flipped, bits, S.vcmps(bits, 0, op="lt"))
            number = S.vcmp(value, value, op="eq")
            key[first + j] = S.vsel(ordered, S.vdup(MINUS_INF_KEY, "int32"), number)
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
        # int64 indices are pairs of words; the upper ones stay 0.
        result[0] = S.vsel(winner, result[0], S.vcmps(lanes, 2 * k, op="eq"))
        hit = S.vcmp(index[first], winner, op="eq")
        for j in tuple(range(first, first + depth - 1)):
            key[j] = S.vsel(key[j + 1], key[j], hit)
            index[j] = S.vsel(index[j + 1], index[j], hit)
        last = first + depth - 1
        key[last] = S.vsel(S.vdup(TAKEN, "int32"), key[last], hit)

    @T.prim_func
    def topk_gate(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
    ):
        with T.Kernel(num_cores) as core:
            words = T.view(topk_idx, (N, 2 * K), "int32")
            scores_ub = T.alloc_shared((block, registers * LANES), "float32")
            # One row more, since a store spans a whole register.
            out_ub = T.alloc_shared((block + -(-LANES // pitch), pitch), "int32")
            T.annotate_buffer_versions({scores_ub: STAGES, out_ub: STAGES})
            rows = T.min(block, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, rows)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                row = tile * rows
                valid = T.min(rows, N - row)
                T.copy(scores[row : row + valid, :], scores_ub[:valid, :E])
                with T.SimdVF():
                    key = S.alloc_local((pair * registers,), "int32")
                    index = S.alloc_local((pair * registers,), "int32")
                    first_result = S.alloc_local((1,), "int32")
                    second_result = S.alloc_local((1,), "int32")
                    results = (first_result, second_result)[:pair]
                    filled = S.vcmps(S.vci(0, "int32"), 2 * K, op="lt")
                    for r in T.serial(T.ceildiv(valid, pair)):
                        for p, result in enumerate(results):
                            load_keys(scores_ub, pair * r + p, p * registers, key, index)
                            sort_columns(p * registers, key, index)
                            result[0] = S.vdup(0, "int32")
                        for k in T.serial(K):
                            for p, result in enumerate(results):
                                take(k, p * registers, key, index, result)
                        for p, result in enumerate(results):
                            S.vsts(out_ub[pair * r + p, 0], result[0], filled)
                T.copy(out_ub[:valid, : 2 * K], words[row : row + valid, :])

    return topk_gate


def _wide(num_experts: int, num_topk: int, num_cores: int) -> Any:
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K = num_experts, num_topk
    registers = -(-E // LANES)
    N = T.dynamic("num_tokens")

    @T.macro
    def make_keys(scores_ub, keys_ub):
        largest, taken = S.vdup(LARGEST, "int32"), S.vdup(TAKEN, "int32")
        for j in T.serial(registers):
            value = S.vadds(S.vld(scores_ub[j * LANES]), 0.0)
            bits = T.reinterpret(value, "int32x64")
            ordered = S.vsel(S.vxor(bits, largest), bits, S.vcmps(bits, 0, op="lt"))
            number = S.vcmp(value, value, op="eq")
            found = S.vsel(ordered, S.vdup(MINUS_INF_KEY, "int32"), number)
            inside = S.vcmps(S.vadds(S.vci(0, "int32"), j * LANES), E, op="lt")
            S.vsts(keys_ub[j * LANES], S.vsel(found, taken, inside))

    @T.macro
    def take(k, keys_ub, winner, result):
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
        result[0] = S.vsel(winner[0], result[0], S.vcmps(S.vci(0, "int32"), 2 * k, op="eq"))

    @T.prim_func
    def topk_gate(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
    ):
        with T.Kernel(num_cores) as core:
            words = T.view(topk_idx, (N, 2 * K), "int32")
            scores_ub = T.alloc_shared((registers * LANES,), "float32")
            keys_ub = T.alloc_shared((registers * LANES,), "int32")
            out_ub = T.alloc_shared((LANES,), "int32")
            T.annotate_buffer_versions({scores_ub: STAGES, keys_ub: 1, out_ub: STAGES})
            for row in T.Persistent([N], num_cores, core, group_size=1, num_stages=STAGES):
                T.copy(scores[row, :], scores_ub[:E])
                with T.SimdVF():
                    winner = S.alloc_local((1,), "int32")
                    result = S.alloc_local((1,), "int32")
                    winner[0] = S.vdup(LARGEST, "int32")
                    result[0] = S.vdup(0, "int32")
                    make_keys(scores_ub, keys_ub)
                    for k in T.serial(K):
                        take(k, keys_ub, winner, result)
                    S.vsts(out_ub[0], result[0])
                T.copy(out_ub[: 2 * K], words[row, :])

    return topk_gate
