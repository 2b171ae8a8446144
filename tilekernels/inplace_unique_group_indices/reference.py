"""inplace_unique_group_indices in torch: every pair of columns compared."""

from __future__ import annotations

import torch


def reference(group_indices: torch.Tensor, num_groups: int) -> None:
    """Write -1 over repeats."""
    same = group_indices[:, :, None] == group_indices[:, None, :]
    repeat = same.tril(-1).any(-1) & (group_indices >= 0)
    group_indices.masked_fill_(repeat, -1)
