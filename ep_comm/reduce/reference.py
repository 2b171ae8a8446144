"""reduce in torch: one pass a choice, in order, in float32."""

from __future__ import annotations

import torch

CHUNK = 1 << 18
"""Values of a slice of tokens; float32 sums of a slice stay in the cache."""


def reference(
    rows: torch.Tensor,
    table: torch.Tensor,
    bias_0: torch.Tensor | None = None,
    bias_1: torch.Tensor | None = None,
) -> torch.Tensor:
    """bf16 (num_tokens, hidden)."""
    tokens, hidden = table.shape[0], rows.shape[1]
    out = rows.new_empty((tokens, hidden))
    step = max(1, CHUNK // hidden)
    for begin in range(0, tokens, step):
        part = slice(begin, begin + step)
        total = torch.zeros_like(out[part], dtype=torch.float32)
        for bias in (bias_0, bias_1):
            if bias is not None:
                total += bias[part]
        for choice in table[part].T:
            here = (choice >= 0).nonzero().squeeze(1)
            total[here] += rows.index_select(0, choice[here])
        out[part] = total
    return out
