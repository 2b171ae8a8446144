"""expand_to_fused in torch."""

from __future__ import annotations

import torch


def reference(
    x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor
) -> torch.Tensor:
    """(num_expanded_tokens, hidden): rows at their places, zeros elsewhere."""
    size = pos_to_expert.shape[0]
    # Bytes, because not every narrow float can be indexed.
    rows = x.view(torch.uint8)
    out = rows.new_zeros((size, rows.shape[1]))
    valid = (token_topk_to_pos >= 0) & (token_topk_to_pos < size)
    token, k = valid.nonzero(as_tuple=True)
    out[token_topk_to_pos[token, k].long()] = rows[token]
    return out.view(x.dtype)
