"""aux_fi on NVIDIA GPUs: the histogram of group_count, whose last step scales."""

from typing import TYPE_CHECKING

from ascendkit.op import Case, Support
from tilekernels.group_count import cuda as counted

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """Every legal shape."""
    return counted.supports(case)


def run(
    topk_idx: "torch.Tensor", num_experts: int, num_aux_topk: int, *, out: "torch.Tensor"
) -> None:
    """Fill ``out`` float32 (num_experts,)."""
    counted.histogram(topk_idx, num_experts, out, float(topk_idx.shape[0] * num_aux_topk))
