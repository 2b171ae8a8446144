"""expand_to_fused_with_sf in torch: two expansions."""

from __future__ import annotations

import torch

from tilekernels.expand_to_fused.reference import reference as expand
from tilekernels.expand_to_fused_with_sf import allocate


def reference(
    x: torch.Tensor,
    x_sf: torch.Tensor,
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Data and scales, the latter in the layout of ``allocate``."""
    maps = (token_topk_to_pos, pos_to_expert)
    _, sf = allocate(x, x_sf, num_per_channels, *maps, use_tma_aligned_col_major_sf)
    return expand(x, *maps), sf.copy_(expand(x_sf, *maps))
