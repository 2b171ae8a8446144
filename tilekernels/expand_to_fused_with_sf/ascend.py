"""expand_to_fused_with_sf on the Ascend 950: two launches of expand_to_fused.

Transposed scales are expanded in rows first and transposed by a torch operation.
"""

from typing import TYPE_CHECKING

from ascendkit.op import Case, Support
from tilekernels.expand_to_fused import ascend as rows

if TYPE_CHECKING:
    import torch


def supports(case: Case) -> Support:
    """Every legal shape."""
    return rows.supports(case)


def run(
    x: "torch.Tensor",
    x_sf: "torch.Tensor",
    num_per_channels: int,
    token_topk_to_pos: "torch.Tensor",
    pos_to_expert: "torch.Tensor",
    use_tma_aligned_col_major_sf: bool,
    *,
    out: "tuple[torch.Tensor, torch.Tensor]",
) -> None:
    """Fill data and scales."""
    data, sf = out
    maps = (token_topk_to_pos, pos_to_expert)
    rows.run(x, *maps, out=data)
    plain = x_sf.new_empty(sf.shape) if use_tma_aligned_col_major_sf else sf
    rows.run(x_sf, *maps, out=plain)
    if use_tma_aligned_col_major_sf:
        sf.copy_(plain)
