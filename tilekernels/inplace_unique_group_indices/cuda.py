"""inplace_unique_group_indices on NVIDIA GPUs, in TileLang: a lane an index, one warp match.

As many whole rows as fit lie side by side in a warp, so that loads are contiguous. ``match_any``
gives every lane the lanes with the same index; one to its left in the same row makes it a repeat.
Only repeats are written.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda

if TYPE_CHECKING:
    import torch

THREADS = 128


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(group_indices: "torch.Tensor", num_groups: int, *, out: None) -> None:
    """Write -1 over repeats in int64 (num_tokens, num_topk)."""
    kernel(group_indices.shape[1])(group_indices.view(-1))


@lru_cache(maxsize=64)
def kernel(num_topk: int, arch: str = "") -> Any:
    """The compiled kernel for a number of columns; ``arch`` compiles where no GPU is."""
    return compile_cuda(prim_func(num_topk), arch)


def prim_func(num_topk: int) -> Any:
    """The TileLang program: int64 (num_tokens * K,), changed in place."""
    from tilelang import language as T

    K = num_topk
    used = WARP // K * K
    per_block = THREADS // WARP * used
    N = T.dynamic("num_indices")

    @T.prim_func
    def inplace_unique_group_indices(indices: T.Tensor((N,), "int64")):
        with T.Kernel(T.ceildiv(N, per_block), threads=THREADS) as block:
            lane = T.get_thread_binding() % WARP
            at = block * per_block + T.get_thread_binding() // WARP * used + lane
            index = T.alloc_var("int64", init=T.int64(-1))
            if lane < used and at < N:
                index = indices[at]
            same = T.alloc_var("uint32")
            same = T.match_any_sync(index)
            # Lanes of this row to the left of this one.
            place = T.cast(lane % K, "uint32")
            first = T.cast(lane // K * K, "uint32")
            left = ((T.uint32(1) << place) - T.uint32(1)) << first
            if index >= T.int64(0) and (same & left) != T.uint32(0):
                indices[at] = T.int64(-1)

    return inplace_unique_group_indices
