"""mask_indices_by_tp on the Ascend 950, in TileLang: a SIMT thread an index.

An index is two words; only its low one takes part, the high one gives the sign and is written anew.
Vector registers have no integer quotient, threads do.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, flat_words, vector_cores

if TYPE_CHECKING:
    import torch

TILE = 2048
"""Indices of one copy: 16 KiB."""
STAGES = 2
THREADS = 512


def supports(case: Case) -> Support:
    """Every legal shape of at most 2**30 - 1 indices."""
    return flat_words(int(case.params["num_indices"]), "indices")


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
    import torch

    found = kernel(vector_cores(out), out.device.type == "cpu")
    words = (t.view(torch.int32).view(-1) for t in (indices, out))
    found(*words, n // num_ep_ranks, tp_rank, num_tp_ranks)


@lru_cache(maxsize=64)
def kernel(num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_cores))


def prim_func(num_cores: int) -> Any:
    """The TileLang program: int64 as words (2 n,), sizes -> int64 as words (2 n,)."""
    from tilelang.ascend import language as T

    W = T.dynamic("num_words")

    @T.prim_func
    def mask_indices_by_tp(
        indices: T.Tensor((W,), "int32"),
        masked: T.Tensor((W,), "int32"),
        per_rank: T.int32,
        tp_rank: T.int32,
        num_tp_ranks: T.int32,
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((2 * TILE,), "int32")
            masked_ub = T.alloc_shared((2 * TILE,), "int32")
            T.annotate_buffer_versions({words_ub: STAGES, masked_ub: STAGES})
            per = T.min(TILE, T.max(4, T.ceildiv(W // 2, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(W // 2, per)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                first = tile * per
                valid = T.min(per, W // 2 - first)
                T.copy(indices[2 * first : 2 * first + 2 * valid], words_ub[: 2 * valid])
                with T.SimtVF(threads=THREADS):
                    for i in T.Parallel(TILE):
                        if i < valid:
                            local = T.alloc_var("int32", init=-1)
                            index = words_ub[2 * i]
                            if words_ub[2 * i + 1] == 0 and index >= 0:
                                rank = T.truncdiv(index, per_rank)
                                group = T.truncdiv(rank, num_tp_ranks)
                                if rank - group * num_tp_ranks == tp_rank:
                                    local = index - (rank - group) * per_rank
                            masked_ub[2 * i] = local
                            masked_ub[2 * i + 1] = local >> 31
                T.copy(masked_ub[: 2 * valid], masked[2 * first : 2 * first + 2 * valid])

    return mask_indices_by_tp
