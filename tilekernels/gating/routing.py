"""Routing of tokens in plain torch: what both gates mean.

The experts of a token come from the first of these that applies:

1. ``mask`` is False: no expert; index -1, weight 0, scores 0.
2. ``force_random``: distinct physical experts, uniformly drawn, and uniform weights.
3. ``fix_routing_mask``: those in ``unmapped_topk_idx``; what is no expert counts as -1, weight 0.
4. The largest of score plus bias, equal ones by index.

In 3 and 4 weights are the scores, without bias, over their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascendkit.philox import philox
from tilekernels.gating import PRIME, SLOTS
from tilekernels.gating.scoring import score
from tilekernels.normalize_weight.reference import reference as normalize
from tilekernels.topk_gate.reference import reference as topk
from tilekernels.topk_sum_and_topk_group_idx.reference import reference as topk_groups

Mask = torch.Tensor | None


@dataclass(frozen=True)
class Routed:
    """Every token's experts.

    Args:
        idx: int64 (num_tokens, num_topk + shared), physical where there is a map.
        weights: float32 of the same shape.
        scores: float32 (num_tokens, num_experts), without bias.
        unmapped: int64 (num_tokens, num_topk), logical.
    """

    idx: torch.Tensor
    weights: torch.Tensor
    scores: torch.Tensor
    unmapped: torch.Tensor


def route(
    logits: torch.Tensor,
    num_topk: int,
    shared: int,
    scale: float,
    ep_rank: int,
    scoring: str,
    *,
    groups: tuple[int, int] = (1, 1),
    mask: Mask = None,
    bias: torch.Tensor | None = None,
    image_bias: torch.Tensor | None = None,
    image_token_mask: Mask = None,
    fix_routing_mask: Mask = None,
    to_physical_map: torch.Tensor | None = None,
    logical_count: torch.Tensor | None = None,
    unmapped_topk_idx: torch.Tensor | None = None,
    force_random: Mask = None,
) -> Routed:
    """Route; ``groups`` is how many groups of experts there are, and how many a token may use."""
    tokens, experts = logits.shape
    scores, ranking = score(logits, scoring)
    biased = ranking if bias is None else ranking + bias
    if image_token_mask is not None:
        biased = torch.where(image_token_mask[:, None], ranking + image_bias, biased)
    unmapped = topk(within_groups(biased, *groups), num_topk)
    if fix_routing_mask is not None:
        fixed = unmapped_topk_idx
        legal = torch.where((fixed >= 0) & (fixed < experts), fixed, -1)
        unmapped = torch.where(fix_routing_mask[:, None], legal, unmapped)
    chosen = torch.where(unmapped >= 0, scores.gather(1, unmapped.clamp(min=0)), 0.0)
    weights = normalize(chosen)[1] * torch.tensor(scale, dtype=torch.float32)
    # Shared experts: the logical ones behind the routed, with weight 1.
    added = torch.arange(experts, experts + shared).expand(tokens, shared)
    idx = torch.cat([unmapped, added], 1)
    weights = torch.cat([weights, torch.ones(tokens, shared)], 1)
    count = None
    if to_physical_map is not None:
        # Counts that make no sense must not read beyond the map.
        count = logical_count.long().clamp(1, to_physical_map.shape[1])
        idx = physical(idx, ep_rank, to_physical_map, count)
    if force_random is not None:
        total = experts + shared if count is None else int(count.sum())
        drawn, uniform = at_random(tokens, num_topk + shared, ep_rank, total)
        idx = torch.where(force_random[:, None], drawn, idx)
        weights = torch.where(force_random[:, None], uniform, weights)
        unmapped = unmapped.masked_fill(force_random[:, None], -1)
        scores = scores.masked_fill(force_random[:, None], 0.0)
    if mask is not None:
        off = ~mask[:, None]
        idx, unmapped = idx.masked_fill(off, -1), unmapped.masked_fill(off, -1)
        weights, scores = weights.masked_fill(off, 0.0), scores.masked_fill(off, 0.0)
    return Routed(idx, weights, scores, unmapped)


def within_groups(ranking: torch.Tensor, num_groups: int, num_topk_groups: int) -> torch.Tensor:
    """``ranking`` with -inf outside a token's best groups, judged by their two best experts."""
    if num_groups == num_topk_groups:
        return ranking
    tokens, experts = ranking.shape
    grouped = ranking.view(tokens, num_groups, experts // num_groups)
    best = topk_groups(grouped, min(2, experts // num_groups), num_topk_groups)
    kept = torch.zeros(tokens, num_groups, dtype=torch.bool).scatter(1, best, True)
    return grouped.where(kept[..., None], -torch.inf).view(tokens, experts)


def physical(
    logical: torch.Tensor, ep_rank: int, to_physical_map: torch.Tensor, count: torch.Tensor
) -> torch.Tensor:
    """Physical experts: of the copies of a logical one, tokens take turns. -1 stays -1."""
    token = torch.arange(len(logical), dtype=torch.int64)[:, None]
    at = logical.clamp(min=0)
    copy = (ep_rank + token * PRIME) % count[at]
    return torch.where(logical >= 0, to_physical_map.long()[at, copy], -1)


def at_random(
    tokens: int, slots: int, seed: int, num_experts: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Distinct experts below ``num_experts`` and weights in (0, 1), (tokens, slots) each.

    Slot j draws below ``num_experts - j``. Then draws are made distinct: the smallest (of equal
    ones, that of the smallest slot) is settled, later slots that drew as much or more move up by
    one, and so on with the rest.
    """
    slot = torch.arange(slots)
    words = philox(seed, torch.arange(tokens)[:, None] * SLOTS + slot)
    weights = words[0].float() * 2.0**-32 + 2.0**-33
    draw = words[1] % (num_experts - slot)
    found = torch.full_like(draw, -1)
    settled = torch.iinfo(torch.int64).max
    for _ in range(slots):
        least, first = draw.min(1, keepdim=True)
        found.scatter_(1, first, least)
        draw.scatter_(1, first, settled)
        later = (draw >= least) & (draw != settled) & (slot > first)
        draw += later
    return found, weights
