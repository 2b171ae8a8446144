"""mask_indices_by_tp in torch."""

from __future__ import annotations

import torch

from tilekernels.mask_indices_by_tp import MAX_N


def reference(
    indices: torch.Tensor, n: int, num_ep_ranks: int, tp_rank: int, num_tp_ranks: int
) -> torch.Tensor:
    """int64, the shape of ``indices``."""
    per_rank = n // num_ep_ranks
    rank, local = indices // per_rank, indices % per_rank
    kept = (indices >= 0) & (indices <= MAX_N) & (rank % num_tp_ranks == tp_rank)
    return torch.where(kept, rank // num_tp_ranks * per_rank + local, -1)
