"""normalize_weight on NVIDIA GPUs, in TileLang: a lane a weight, sums by shuffles.

A token has as many lanes as the next power of two of its weights; lanes without one add zero. Every
lane computes the same sum and divides its own weight, so that loads and stores are contiguous and
no thread divides more than once.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda
from tilekernels.normalize_weight import EPSILON

if TYPE_CHECKING:
    import torch

THREADS = 256


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(topk_weights: "torch.Tensor", *, out: "tuple[torch.Tensor, torch.Tensor]") -> None:
    """Fill (denominator, normalized_weights)."""
    kernel(topk_weights.shape[1])(topk_weights, *out)


@lru_cache(maxsize=64)
def kernel(num_topk: int, arch: str = "") -> Any:
    """The compiled kernel for a number of columns; ``arch`` compiles where no GPU is."""
    return compile_cuda(prim_func(num_topk), arch)


def prim_func(num_topk: int) -> Any:
    """The TileLang program: float32 (N, K) -> float32 (N,), float32 (N, K)."""
    from tilelang import language as T

    K = num_topk
    lanes = 1 << (K - 1).bit_length()
    tokens = THREADS // lanes
    steps = tuple(s for s in (16, 8, 4, 2, 1) if s < lanes)
    assert lanes <= WARP
    N = T.dynamic("num_tokens")

    @T.prim_func
    def normalize_weight(
        topk_weights: T.Tensor((N, K), "float32"),
        denominator: T.Tensor((N,), "float32"),
        normalized: T.Tensor((N, K), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, tokens), threads=THREADS) as block:
            token = block * tokens + T.get_thread_binding() // lanes
            lane = T.get_thread_binding() % lanes
            weight = T.alloc_var("float32", init=0.0)
            total = T.alloc_var("float32")
            if token < N and lane < K:
                weight = topk_weights[token, lane]
            total = weight
            for step in steps:
                total = total + T.shfl_xor(total, step)
            total = total + T.float32(EPSILON)
            if token < N and lane < K:
                normalized[token, lane] = weight / total
            if token < N and lane == 0:
                denominator[token] = total

    return normalize_weight
