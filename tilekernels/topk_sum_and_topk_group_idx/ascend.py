"""topk_sum_and_topk_group_idx on the Ascend 950, in TileLang: a warp a token, a lane a group.

A lane walks over its group for the best one or two; then the warp takes the best group in turn.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES_SIMT
from ascendkit.op import Case, Support
from tilekernels.gating.ascend_groups import group_macros
from tilekernels.machine import WARP, compile_ascend, padded, vector_cores

if TYPE_CHECKING:
    import torch

TILE_BYTES = 32 * 1024
"""Scores of one copy, where a token is not longer."""
MAX_ROWS = 16
STAGES = 2
RESULT_BYTES = MAX_ROWS * STAGES * 2 * 4 * WARP
PASSES = {"TL_DISABLE_THREAD_STORAGE_SYNC": True}
"""Threads exchange values by the collectives of a warp only."""


def supports(case: Case) -> Support:
    """Every legal shape of which two tokens fit the Unified Buffer."""
    groups, per_group = int(case.params["num_groups"]), int(case.params["per_group"])
    need = STAGES * 4 * padded(groups * per_group) + RESULT_BYTES
    if need > UB_BYTES_SIMT:
        what = f"{groups} groups of {per_group}: two tokens and the result take {need} bytes"
        return Support(False, f"{what} of the {UB_BYTES_SIMT} there are")
    return Support(True)


def run(
    scores: "torch.Tensor", num_topk_sum: int, num_topk_groups: int, *, out: "torch.Tensor"
) -> None:
    """Fill ``out``, int64 (num_tokens, num_topk_groups)."""
    import torch

    shape = (*scores.shape[1:], num_topk_sum, num_topk_groups)
    found = kernel(*shape, vector_cores(scores), scores.device.type == "cpu")
    found(scores.view(len(scores), -1), out.view(torch.int32))


@lru_cache(maxsize=64)
def kernel(
    num_groups: int, per_group: int, top: int, keep: int, num_cores: int, emulated: bool
) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_groups, per_group, top, keep, num_cores), **PASSES)


def rows_per_tile(experts: int) -> int:
    """Tokens of one copy."""
    return max(1, min(MAX_ROWS, TILE_BYTES // (4 * padded(experts))))


def prim_func(num_groups: int, per_group: int, top: int, keep: int, num_cores: int) -> Any:
    """The TileLang program: float32 (N, G * per_group) -> int64 as words (N, 2 keep)."""
    from tilelang.ascend import language as T

    G, E = num_groups, num_groups * per_group
    B, g = rows_per_tile(E), group_macros(G, per_group)
    N = T.dynamic("num_tokens")

    @T.prim_func
    def topk_sum_and_topk_group_idx(
        scores: T.Tensor((N, E), "float32"),
        words: T.Tensor((N, 2 * keep), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            scores_ub = T.alloc_shared((B, padded(E)), "float32")
            words_ub = T.alloc_shared((B, padded(2 * keep)), "int32")
            T.annotate_buffer_versions({scores_ub: STAGES})
            rows = T.min(B, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, rows)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                row = tile * rows
                valid = T.min(rows, N - row)
                T.copy(scores[row : row + valid, :], scores_ub[:valid, :E])
                with T.SimtVF(threads=B * WARP):
                    r = T.get_thread_binding(0) // WARP
                    lane = T.get_thread_binding(0) % WARP
                    if r < valid:
                        total = T.alloc_local((1,), "float32")
                        open_ = T.alloc_local((1,), "int32")
                        winner = T.alloc_local((1,), "int32")
                        open_[0] = T.if_then_else(lane < G, 1, 0)
                        g.best_sum(scores_ub, r, lane, top, total)
                        for k in T.serial(keep):
                            g.take(lane, total, open_, winner)
                            if lane < 2:
                                words_ub[r, 2 * k + lane] = T.if_then_else(lane == 0, winner[0], 0)
                T.copy(words_ub[:valid, : 2 * keep], words[row : row + valid, :])

    return topk_sum_and_topk_group_idx
