"""top2_sum_gate in torch: the routing of both gates, then the indices of a tensor-parallel rank."""

from __future__ import annotations

from typing import Any

import torch

from tilekernels.gating.routing import route
from tilekernels.mask_indices_by_tp.reference import reference as of_rank


def reference(*args: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(topk_idx, topk_weights) of the arguments of ``SCHEMA``; fills ``unmapped_topk_idx``."""
    (
        logits, bias, num_topk, num_topk_groups, num_groups, _, shared, scale, ep_rank,
        num_ep_ranks, tp_rank, num_tp_ranks, scoring, mask, fixed, physical, count, unmapped,
    ) = args  # fmt: skip
    routed = route(
        logits, num_topk, shared, scale, ep_rank, scoring, groups=(num_groups, num_topk_groups),
        mask=mask, bias=bias, fix_routing_mask=fixed, to_physical_map=physical,
        logical_count=count, unmapped_topk_idx=unmapped,
    )  # fmt: skip
    if unmapped is not None:
        unmapped.copy_(routed.unmapped)
    total = logits.shape[1] + (0 if physical is None else physical.shape[1] - 1)
    return of_rank(routed.idx, total, num_ep_ranks, tp_rank, num_tp_ranks), routed.weights
