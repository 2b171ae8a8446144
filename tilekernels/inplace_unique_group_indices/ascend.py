"""inplace_unique_group_indices on the Ascend 950, in TileLang: a SIMT thread a token.

A row is a few words, so a thread compares its own: low and high words of every pair. A tile comes
in, is changed in place and leaves by one copy each.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, padded, vector_cores

if TYPE_CHECKING:
    import torch

TILE = 128
"""Tokens of one copy, a thread each."""


def supports(case: Case) -> Support:
    """Every legal shape: a tile of 32 columns takes 32 KiB."""
    return Support(True)


def run(group_indices: "torch.Tensor", num_groups: int, *, out: None) -> None:
    """Write -1 over repeats in int64 (num_tokens, num_topk)."""
    import torch

    cores, emulated = vector_cores(group_indices), group_indices.device.type == "cpu"
    kernel(group_indices.shape[1], cores, emulated)(group_indices.view(torch.int32))


@lru_cache(maxsize=64)
def kernel(num_topk: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_topk, num_cores))


def prim_func(num_topk: int, num_cores: int) -> Any:
    """The TileLang program: int64 as words (num_tokens, 2 K), changed in place."""
    from tilelang.ascend import language as T

    K, pitch = num_topk, padded(2 * num_topk)
    N = T.dynamic("num_tokens")

    @T.prim_func
    def inplace_unique_group_indices(words: T.Tensor((N, 2 * K), "int32")):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((TILE, pitch), "int32")
            T.annotate_buffer_versions({words_ub: 1})
            per = T.min(TILE, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, per)], num_cores, core, group_size=1, num_stages=1
            ):
                row = tile * per
                valid = T.min(per, N - row)
                T.copy(words[row : row + valid, :], words_ub[:valid, : 2 * K])
                with T.SimtVF(threads=TILE):
                    for r in T.Parallel(TILE):
                        if r < valid:
                            # From the right, so that what is compared with is still there.
                            for back in T.serial(K - 1):
                                j = K - 1 - back
                                repeat = T.alloc_var("int32", init=0)
                                for i in T.serial(j):
                                    if (
                                        words_ub[r, 2 * i] == words_ub[r, 2 * j]
                                        and words_ub[r, 2 * i + 1] == words_ub[r, 2 * j + 1]
                                    ):
                                        repeat = 1
                                if repeat == 1 and words_ub[r, 2 * j + 1] >= 0:
                                    words_ub[r, 2 * j] = -1
                                    words_ub[r, 2 * j + 1] = -1
                T.copy(words_ub[:valid, : 2 * K], words[row : row + valid, :])

    return inplace_unique_group_indices
