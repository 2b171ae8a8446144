"""topk_sum_and_topk_group_idx in torch: sums of the best, then a stable selection."""

from __future__ import annotations

import torch

from tilekernels.topk_gate.reference import reference as topk


def reference(scores: torch.Tensor, num_topk_sum: int, num_topk_groups: int) -> torch.Tensor:
    """Group indices int64 (num_tokens, num_topk_groups)."""
    ranked = scores.masked_fill(scores.isnan(), -torch.inf)
    return topk(ranked.topk(num_topk_sum, dim=-1).values.sum(-1), num_topk_groups)
