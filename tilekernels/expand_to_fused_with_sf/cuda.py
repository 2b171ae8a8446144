"""expand_to_fused_with_sf on NVIDIA GPUs: expand_to_fused with a few words more."""

from typing import TYPE_CHECKING

from ascendkit.op import Case, Support
from tilekernels.expand_to_fused import cuda as rows
from tilekernels.expand_to_fused.cuda_program import Scales
from tilekernels.machine import grain

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
    import torch

    data, sf = out
    row = x.shape[1] * x.element_size()
    layout = rows.plan(row, grain(row, x, data), len(data), token_topk_to_pos.numel())
    scales = Scales(x_sf.shape[1], use_tma_aligned_col_major_sf)
    found = rows.kernel(row, token_topk_to_pos.shape[1], layout, scales)
    words = (rows.words(t, layout) for t in (x, data))
    if use_tma_aligned_col_major_sf:
        # The columns with their padding, which is not written.
        shape = (sf.shape[1], sf.stride(1) if sf.shape[1] > 1 else len(sf))
        sf = sf.as_strided(shape, (shape[1], 1))
    flat, expanded = words
    maps = (token_topk_to_pos, pos_to_expert)
    blocks = rows.num_blocks(layout, x, data)
    found(flat, x_sf.view(torch.int32), *maps, expanded, sf.view(torch.int32), blocks)
