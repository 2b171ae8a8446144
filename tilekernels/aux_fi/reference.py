"""aux_fi in torch."""

from __future__ import annotations

import torch

from tilekernels.group_count.reference import reference as counts_of


def reference(topk_idx: torch.Tensor, num_experts: int, num_aux_topk: int) -> torch.Tensor:
    """float32 (num_experts,)."""
    places = topk_idx.shape[0] * num_aux_topk
    return counts_of(topk_idx, num_experts).float() * num_experts / max(places, 1)
