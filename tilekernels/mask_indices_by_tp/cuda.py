"""mask_indices_by_tp on NVIDIA GPUs, in TileLang: two indices a thread, 32-bit quotients."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import compile_cuda, grain

if TYPE_CHECKING:
    import torch

THREADS = 128
WIDTH = 2
"""Indices of one 16-byte load."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    indices: "torch.Tensor",
    n: int,
    num_ep_ranks: int,
    tp_rank: int,
    num_tp_ranks: int,
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` int64, the shape of ``indices``."""
    width = grain(indices.nbytes, indices, out) // 8
    flat = (t.view(-1) for t in (indices, out))
    kernel(width)(*flat, n // num_ep_ranks, tp_rank, num_tp_ranks)


@lru_cache(maxsize=8)
def kernel(width: int = WIDTH, arch: str = "") -> Any:
    """The compiled kernel for a number of indices a load; ``arch`` compiles where no GPU is."""
    return compile_cuda(prim_func(width), arch)


def prim_func(width: int) -> Any:
    """The TileLang program: int64 (n,), sizes -> int64 (n,); n a multiple of ``width``."""
    from tilelang import language as T

    N = T.dynamic("num_indices")

    @T.prim_func
    def mask_indices_by_tp(
        indices: T.Tensor((N,), "int64"),
        masked: T.Tensor((N,), "int64"),
        per_rank: T.int32,
        tp_rank: T.int32,
        num_tp_ranks: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, THREADS * width), threads=THREADS) as block:
            held = T.alloc_local((width,), "int64")
            at = (block * THREADS + T.get_thread_binding()) * width
            if at < N:
                for v in T.vectorized(width):
                    held[v] = indices[at + v]
                for v in T.unroll(width):
                    index = T.cast(held[v], "int32")
                    rank = T.truncdiv(index, per_rank)
                    group = T.truncdiv(rank, num_tp_ranks)
                    inside = held[v] >> T.int64(31) == T.int64(0)
                    kept = inside and rank - group * num_tp_ranks == tp_rank
                    local = T.if_then_else(kept, index - (rank - group) * per_rank, -1)
                    held[v] = T.cast(local, "int64")
                for v in T.vectorized(width):
                    masked[at + v] = held[v]

    return mask_indices_by_tp
