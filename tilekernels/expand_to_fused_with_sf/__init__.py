"""expand_to_fused_with_sf: quantised rows and their scales at every place of a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_type, bad_value
from tilekernels.arguments import check_tensor
from tilekernels.expand_to_fused import check_maps, check_places

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor x, Tensor x_sf, int num_per_channels, Tensor token_topk_to_pos, "
    "Tensor pos_to_expert, bool use_tma_aligned_col_major_sf) -> (Tensor, Tensor)"
)
SF_ALIGNMENT = 4
"""Positions a column of transposed scales is padded to: 16 bytes."""

_name = "tilekernels.expand_to_fused_with_sf"
_what = "expand_to_fused_with_sf"


def expand_to_fused_with_sf(
    x: tuple[torch.Tensor, torch.Tensor],
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool = False,
    *,
    platform: str | None = None,
    check_values: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``expand_to_fused`` of rows and of their scales; both are zero where no expert has the row.

    Args:
        x: data (num_tokens, hidden) of any dtype and scales (num_tokens, hidden_sf), contiguous;
            scales are float32, one for ``num_per_channels`` columns, or int32, four to a word.
        num_per_channels: 32 or 128.
        token_topk_to_pos, pos_to_expert, check_values: as for ``expand_to_fused``.
        use_tma_aligned_col_major_sf: give scales column-major, columns padded to 16 bytes; needed
            for int32 scales.
        platform: a platform to force; by default the device of ``x`` decides.

    Returns:
        data (num_expanded_tokens, hidden), scales (num_expanded_tokens, hidden_sf).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or map that is not legal.

    Source: expand_to_fused_with_sf of TileKernels before 2.1.0.
    """
    if not isinstance(x, (tuple, list)):
        raise bad_type(f"{_what} x", x, "a pair: data and scales")
    if len(x) != 2:
        raise bad_value(f"{_what} x", f"{len(x)} tensors", "data and scales")
    data, sf = x
    args = (data, sf, num_per_channels, token_topk_to_pos, pos_to_expert)
    return in_schema_order(
        *args, use_tma_aligned_col_major_sf, platform=platform, check_values=check_values
    )


def in_schema_order(
    x: torch.Tensor,
    x_sf: torch.Tensor,
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool,
    *,
    platform: str | None = None,
    check_values: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`expand_to_fused_with_sf` with data and scales apart."""
    import torch

    check_maps(_what, x, token_topk_to_pos, pos_to_expert)
    if num_per_channels not in (32, 128):
        raise bad_value(f"{_what} num_per_channels", num_per_channels, "32 or 128", 128)
    kinds = [torch.float32, torch.int32]
    check_tensor(f"{_what} x_sf", x_sf, kinds, (x.shape[0], "hidden_sf"), x.device)
    packed = x_sf.dtype == torch.int32
    wanted = -(-x.shape[1] // (num_per_channels * (4 if packed else 1)))
    if x_sf.shape[1] != wanted:
        raise bad_value(f"{_what} x_sf", tuple(x_sf.shape), f"{wanted} columns")
    if packed and not use_tma_aligned_col_major_sf:
        raise bad_value(
            f"{_what} use_tma_aligned_col_major_sf", False, "True for int32 scales", True
        )
    check_places(_what, token_topk_to_pos, pos_to_expert, platform, check_values)
    params = {"num_tokens": x.shape[0], "row_bytes": x.shape[1] * x.element_size()}
    args = (x, x_sf, num_per_channels, token_topk_to_pos, pos_to_expert)
    found: tuple[torch.Tensor, torch.Tensor] = dispatch.call(
        _name, (*args, bool(use_tma_aligned_col_major_sf)), params, platform=platform
    )
    return found


def allocate(
    x: torch.Tensor,
    x_sf: torch.Tensor,
    num_per_channels: int,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    use_tma_aligned_col_major_sf: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of a call, not filled."""
    size, words = pos_to_expert.shape[0], x_sf.shape[1]
    out = x.new_empty((size, x.shape[1]))
    if not use_tma_aligned_col_major_sf:
        return out, x_sf.new_empty((size, words))
    pitch = (size + SF_ALIGNMENT - 1) // SF_ALIGNMENT * SF_ALIGNMENT
    return out, x_sf.new_empty((words, pitch))[:, :size].T
