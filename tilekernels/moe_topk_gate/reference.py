"""moe_topk_gate in torch: what tilekernels/gating/routing.py says, written where asked."""

from __future__ import annotations

import torch

from tilekernels.gating.routing import route

Optional = torch.Tensor | None


def reference(
    logits: torch.Tensor,
    num_topk: int,
    use_shared_as_routed: bool,
    num_shared_experts: int,
    routed_scaling_factor: float,
    ep_rank: int,
    scoring_func: str,
    mask: Optional,
    bias: Optional,
    image_bias: Optional,
    image_token_mask: Optional,
    fix_routing_mask: Optional,
    to_physical_map: Optional,
    logical_count: Optional,
    unmapped_topk_idx: Optional,
    force_random: Optional,
    scores: Optional,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(topk_idx, topk_weights); fills ``unmapped_topk_idx`` and ``scores``."""
    routed = route(
        logits,
        num_topk,
        num_shared_experts if use_shared_as_routed else 0,
        routed_scaling_factor,
        ep_rank,
        scoring_func,
        mask=mask,
        bias=bias,
        image_bias=image_bias,
        image_token_mask=image_token_mask,
        fix_routing_mask=fix_routing_mask,
        to_physical_map=to_physical_map,
        logical_count=logical_count,
        unmapped_topk_idx=unmapped_topk_idx,
        force_random=force_random,
    )
    if unmapped_topk_idx is not None:
        unmapped_topk_idx.copy_(routed.unmapped)
    if scores is not None:
        scores.copy_(routed.scores)
    return routed.idx, routed.weights
