"""aux_fi on the Ascend 950: the histogram of group_count, then two operations on its few counts."""

from typing import TYPE_CHECKING

from ascendkit.op import Case, Support
from tilekernels.group_count import ascend as histogram

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """As ``group_count``."""
    return histogram.supports(case)


def run(
    topk_idx: "torch.Tensor", num_experts: int, num_aux_topk: int, *, out: "torch.Tensor"
) -> None:
    """Fill ``out`` float32 (num_experts,)."""
    import torch

    counts = torch.empty(num_experts, dtype=torch.int32, device=out.device)
    histogram.run(topk_idx, num_experts, out=counts)
    out.copy_(counts).mul_(num_experts).div_(max(topk_idx.shape[0] * num_aux_topk, 1))
