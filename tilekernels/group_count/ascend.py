"""group_count on the Ascend 950, in TileLang: a histogram a core by SIMT atomics, added by copies.

Cores take tiles of indices in turn. Their histograms leave by copies that add to global memory;
integers, so that the order of cores does not show.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, flat_words, padded, vector_cores

if TYPE_CHECKING:
    import torch

TILE = 2048
"""Indices of one copy: 16 KiB."""
STAGES = 2
THREADS = 512


def supports(case: Case) -> Support:
    """Every legal shape of at most 2**30 - 1 indices: 8192 counters take 32 KiB."""
    return flat_words(int(case.params["num_indices"]), "indices")


def run(group_idx: "torch.Tensor", num_groups: int, *, out: "torch.Tensor") -> None:
    """Fill ``out`` int32 (num_groups,)."""
    import torch

    out.zero_()
    if group_idx.numel():
        words = group_idx.view(torch.int32).view(-1)
        kernel(num_groups, vector_cores(out), out.device.type == "cpu")(words, out)


@lru_cache(maxsize=64)
def kernel(num_groups: int, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(num_groups, num_cores))


def prim_func(num_groups: int, num_cores: int) -> Any:
    """The TileLang program: int64 indices as words (2 n,) -> int32 (num_groups,), added to."""
    from tilelang.ascend import language as T

    G, room = num_groups, padded(num_groups)
    W = T.dynamic("num_words")

    @T.prim_func
    def group_count(
        words: T.Tensor((W,), "int32"),
        out: T.Tensor((G,), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((2 * TILE,), "int32")
            counts_ub = T.alloc_shared((room,), "int32")
            T.annotate_buffer_versions({words_ub: STAGES, counts_ub: 1})
            per = T.min(TILE, T.max(8, T.ceildiv(W // 2, num_cores)))
            with T.SimtVF(threads=THREADS):
                for g in T.Parallel(room):
                    counts_ub[g] = 0
            for tile in T.Persistent(
                [T.ceildiv(W // 2, per)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                first = tile * per
                valid = T.min(per, W // 2 - first)
                T.copy(words[2 * first : 2 * first + 2 * valid], words_ub[: 2 * valid])
                with T.SimtVF(threads=THREADS):
                    for i in T.Parallel(TILE):
                        if i < valid:
                            # The high word of an index in range is zero.
                            group = words_ub[2 * i]
                            if words_ub[2 * i + 1] == 0 and group >= 0 and group < G:
                                T.atomic_add(counts_ub[group], 1)
            T.set_atomic("add", "int32")
            T.copy(counts_ub[:G], out)
            T.set_atomic_none()

    return group_count
