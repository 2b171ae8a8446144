"""normalize_weight on the Ascend 950, in TileLang: a SIMT thread a token.

Rows are a few words long, shorter than a vector register, so a thread walks over its own.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, padded, vector_cores
from tilekernels.normalize_weight import EPSILON

if TYPE_CHECKING:
    import torch

TILE = 128
"""Tokens of one copy, a thread each."""
STAGES = 2


def supports(case: Case) -> Support:
    """Every legal shape: a tile of 32 columns takes 32 KiB."""
    return Support(True)


def run(topk_weights: "torch.Tensor", *, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (denominator, normalized_weights)."""
    cores, emulated = vector_cores(topk_weights), topk_weights.device.type == "cpu"
    kernel(topk_weights.shape[1], cores, emulated)(topk_weights, *out)


@lru_cache(maxsize=64)
def kernel(num_topk: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_topk, num_cores))


def prim_func(num_topk: int, num_cores: int) -> Any:
    """The TileLang program: float32 (N, K) -> float32 (N,), float32 (N, K)."""
    from tilelang.ascend import language as T

    K, pitch = num_topk, padded(num_topk)
    pairs = tuple(
        (j, j + step)
        for step in (16, 8, 4, 2, 1)
        for j in range(K)
        if j % (2 * step) < step and j + step < K
    )
    N = T.dynamic("num_tokens")

    @T.prim_func
    def normalize_weight(
        topk_weights: T.Tensor((N, K), "float32"),
        denominator: T.Tensor((N,), "float32"),
        normalized: T.Tensor((N, K), "float32"),
    ):
        with T.Kernel(num_cores) as core:
            weights_ub = T.alloc_shared((TILE, pitch), "float32")
            normalized_ub = T.alloc_shared((TILE, pitch), "float32")
            denominator_ub = T.alloc_shared((TILE,), "float32")
            T.annotate_buffer_versions(
                {weights_ub: STAGES, normalized_ub: STAGES, denominator_ub: STAGES}
            )
            per = T.min(TILE, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, per)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                row = tile * per
                valid = T.min(per, N - row)
                T.copy(topk_weights[row : row + valid, :], weights_ub[:valid, :K])
                with T.SimtVF(threads=TILE):
                    for r in T.Parallel(TILE):
                        if r < valid:
                            sums = T.alloc_local((K,), "float32")
                            for j in T.unroll(K):
                                sums[j] = weights_ub[r, j]
                            for into, other in pairs:
                                sums[into] = sums[into] + sums[other]
                            sums[0] = sums[0] + T.float32(EPSILON)
                            denominator_ub[r] = sums[0]
                            for j in T.unroll(K):
                                normalized_ub[r, j] = weights_ub[r, j] / sums[0]
                T.copy(denominator_ub[:valid], denominator[row : row + valid])
                T.copy(normalized_ub[:valid, :K], normalized[row : row + valid, :])

    return normalize_weight
