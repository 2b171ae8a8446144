"""topk_gate on the Ascend 950's vector cores, in TileLang: rows of scores in, indices out.

How the best are found: ``tilekernels/gating/ascend_select.py``. Two rows at a time hide each
other's latency; rows of more than ``MAX_REGISTERS`` registers go one by one.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support
from tilekernels.gating.ascend_select import LANES, MAX_REGISTERS, registers_of, selection
from tilekernels.machine import compile_ascend, vector_cores

if TYPE_CHECKING:
    import torch

TILE_BYTES = 16 * 1024
"""Scores of one copy: long bursts, and tiles enough for every core."""
STAGES = 2


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
    kernel(scores.shape[1], num_topk, vector_cores(out), emulated)(scores, out)


@lru_cache(maxsize=256)
def kernel(num_experts: int, num_topk: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel of a shape; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_experts, num_topk, num_cores))


def rows_per_tile(num_experts: int) -> int:
    """Rows of one copy, an even number so that rows go in pairs."""
    registers = registers_of(num_experts)
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
    registers, s = registers_of(E), selection(E, K, words=2)
    block = rows_per_tile(E)
    pair = 2 if registers <= 4 else 1
    pitch = -(-2 * K // 8) * 8
    N = T.dynamic("num_tokens")

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
                            s.load_keys(scores_ub, pair * r + p, p * registers, key, index)
                            s.sort_columns(p * registers, key, index)
                            result[0] = S.vdup(0, "int32")
                        for k in T.serial(K):
                            for p, result in enumerate(results):
                                s.take(k, p * registers, key, index, result)
                        for p, result in enumerate(results):
                            S.vsts(out_ub[pair * r + p, 0], result[0], filled)
                T.copy(out_ub[:valid, : 2 * K], words[row : row + valid, :])

    return topk_gate


def _wide(num_experts: int, num_topk: int, num_cores: int) -> Any:
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K = num_experts, num_topk
    registers, s = registers_of(E), selection(E, K, words=2)
    N = T.dynamic("num_tokens")

    @T.prim_func
    def topk_gate(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
    ):
        with T.Kernel(num_cores) as core:
            words = T.view(topk_idx, (N, 2 * K), "int32")
            scores_ub = T.alloc_shared((1, registers * LANES), "float32")
            keys_ub = T.alloc_shared((registers * LANES,), "int32")
            out_ub = T.alloc_shared((LANES,), "int32")
            T.annotate_buffer_versions({scores_ub: STAGES, keys_ub: 1, out_ub: STAGES})
            for row in T.Persistent([N], num_cores, core, group_size=1, num_stages=STAGES):
                T.copy(scores[row, :], scores_ub[0, :E])
                with T.SimdVF():
                    winner = S.alloc_local((1,), "int32")
                    result = S.alloc_local((1,), "int32")
                    winner[0] = S.vdup(-1, "int32")
                    result[0] = S.vdup(0, "int32")
                    s.make_keys(scores_ub, 0, keys_ub)
                    for k in T.serial(K):
                        s.take_wide(k, keys_ub, winner, result)
                    S.vsts(out_ub[0], result[0])
                T.copy(out_ub[: 2 * K], words[row, :])

    return topk_gate
