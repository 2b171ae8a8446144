"""topk_gate in plain torch: the definition of right."""

from __future__ import annotations

import torch


def reference(scores: torch.Tensor, num_topk: int) -> torch.Tensor:
    """First ``num_topk`` columns of a stable descending argsort, a NaN taken for -inf."""
    ranked = scores.masked_fill(scores.isnan(), -torch.inf)
    return ranked.argsort(dim=-1, descending=True, stable=True)[:, :num_topk].contiguous()
