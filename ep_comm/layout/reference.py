"""layout in torch: a stable sort by receiver numbers the tokens of each."""

from __future__ import annotations

import torch

from ep_comm.hop import last_on_rank


def reference(topk_idx: torch.Tensor, num_experts: int, num_ranks: int) -> torch.Tensor:
    """int32 (N + E + t * k): tokens per rank, choices per expert, slots."""
    rank = owner(topk_idx, num_experts // num_ranks)
    last = last_on_rank(rank)
    per_expert = topk_idx[topk_idx >= 0].bincount(minlength=num_experts)
    target = rank[last]
    per_rank = target.bincount(minlength=num_ranks)
    order = target.argsort(stable=True)
    first = per_rank.cumsum(0) - per_rank
    place = torch.empty_like(target)
    place[order] = torch.arange(len(target), device=target.device) - first[target[order]]
    slot = torch.full_like(topk_idx, -1)
    slot[last] = place
    return torch.cat([per_rank, per_expert, slot.flatten()]).to(torch.int32)


def owner(topk_idx: torch.Tensor, experts_per_rank: int) -> torch.Tensor:
    """Rank that holds each choice, -1 for none."""
    return torch.where(topk_idx >= 0, topk_idx // experts_per_rank, -1)
