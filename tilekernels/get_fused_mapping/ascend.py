"""get_fused_mapping on the Ascend 950, in TileLang: two launches of SIMT code, a run a core.

The first launch counts the experts of every run. In the second every core adds the counts of
earlier runs to find where its entries begin. A tile of its run is cut once more, into one piece a
thread: threads count their pieces, each in counters of its own, sums over earlier threads follow,
a thread an expert, and then threads hand out places in order. No atomics, no sorting, and no
result that depends on timing. Entries and padding go to global memory word by word.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.get_fused_mapping.ascend_program import count_program, place_program
from tilekernels.machine import compile_ascend, flat_words, padded, vector_cores

if TYPE_CHECKING:
    import torch

PASSES = {"TL_DISABLE_THREAD_STORAGE_SYNC": True}
"""Barriers stand where threads read what others wrote."""


def supports(case: Case) -> Support:
    """Every legal shape of at most 2**30 - 1 choices: counters adapt to the experts."""
    return flat_words(int(case.params["num_tokens"]) * int(case.params["num_topk"]), "choices")


def run(
    topk_idx: "torch.Tensor",
    num_experts: int,
    num_expanded_tokens: int,
    alignment: int,
    *,
    out: "tuple[torch.Tensor, ...]",
) -> None:
    """Fill the seven outputs."""
    import torch

    cores, topk = vector_cores(topk_idx), topk_idx.shape[1]
    words = topk_idx.view(torch.int32).view(-1)
    counts = topk_idx.new_zeros((cores, padded(num_experts)), dtype=torch.int32)
    count, place = kernels(num_experts, topk, cores, topk_idx.device.type == "cpu")
    if len(words):
        count(words, counts)
    place(words, counts, *(t.view(-1) for t in out), alignment)


@lru_cache(maxsize=64)
def kernels(num_experts: int, num_topk: int, num_cores: int, emulated: bool) -> tuple[Any, Any]:
    """Both compiled kernels; for the NPU and for the emulator."""
    count = count_program(num_experts, num_cores)
    place = place_program(num_experts, num_topk, num_cores)
    return compile_ascend(count, **PASSES), compile_ascend(place, **PASSES)
