"""group_count in torch."""

from __future__ import annotations

import torch


def reference(group_idx: torch.Tensor, num_groups: int) -> torch.Tensor:
    """int32 (num_groups,)."""
    valid = group_idx[(group_idx >= 0) & (group_idx < num_groups)]
    counts = group_idx.new_zeros(num_groups, dtype=torch.int32)
    return counts.index_add_(0, valid, torch.ones_like(valid, dtype=torch.int32))
