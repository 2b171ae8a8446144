"""get_fused_mapping in torch: a stable sort by expert puts entries in order."""

from __future__ import annotations

import torch


def reference(
    topk_idx: torch.Tensor, num_experts: int, num_expanded_tokens: int, alignment: int
) -> tuple[torch.Tensor, ...]:
    """(pos_to_expert, pos_to_token, pos_to_token_topk, token_topk_to_pos, start, end, sizes)."""
    topk, int32 = topk_idx.shape[1], torch.int32
    expert = topk_idx.flatten()
    entry = ((expert >= 0) & (expert < num_experts)).nonzero()[:, 0]
    entry = entry[expert[entry].argsort(stable=True)]
    expert = expert[entry]
    counts = expert.new_zeros(num_experts).index_add_(0, expert, torch.ones_like(expert))
    sizes = (counts + alignment - 1) // alignment * alignment
    end = sizes.cumsum(0)
    start = end - sizes
    # Within an expert, an entry's number is its place in the sorted list less that of the first.
    first = counts.cumsum(0) - counts
    place = start[expert] + torch.arange(len(entry), device=entry.device) - first[expert]
    fits = place < num_expanded_tokens
    entry, expert, place = entry[fits], expert[fits], place[fits]
    of_place = torch.full((3, num_expanded_tokens), -1, dtype=int32, device=entry.device)
    of_place[:, place] = torch.stack([expert, entry // topk, entry]).to(int32)
    places = torch.full((topk_idx.numel(),), -1, dtype=int32, device=entry.device)
    places[entry] = place.to(int32)
    ranges = (t.to(int32) for t in (start, end, sizes))
    return (*(t.clone() for t in of_place), places.view(topk_idx.shape), *ranges)
