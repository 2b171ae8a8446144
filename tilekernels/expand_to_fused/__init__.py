"""expand_to_fused: every token's row at each of its places in the expert-major layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor x, Tensor token_topk_to_pos, Tensor pos_to_expert) -> Tensor"
MAX_TOPK = 32

_name = "tilekernels.expand_to_fused"


def expand_to_fused(
    x: torch.Tensor,
    token_topk_to_pos: torch.Tensor,
    pos_to_expert: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Copy x[n] to row token_topk_to_pos[n, k] of the result; zeros where no expert has the row.

    The maps are those of ``get_fused_mapping``: every position with an expert is named once, and
    places of -1 (or beyond the result) are left out. Rows are zero where ``pos_to_expert`` is
    negative, also without tokens. Bytes move unchanged, NaN payloads included. Differentiable in
    ``x`` for float32, bfloat16 and float16: the adjoint is ``reduce_fused`` without weights.

    Args:
        x: (num_tokens, hidden) of any dtype, contiguous.
        token_topk_to_pos: int32 (num_tokens, num_topk), contiguous; num_topk from 1 to 32.
        pos_to_expert: int32 (num_expanded_tokens,), contiguous.
        out: (num_expanded_tokens, hidden) of the same dtype, contiguous; written and returned.
        platform: a platform to force; by default the device of ``x`` decides.

    Returns:
        (num_expanded_tokens, hidden), dtype of ``x``. A position that has an expert and is named by
        no token is not written.

    Raises:
        TypeError, ValueError: dtype, shape, stride or device that is not legal.

    Source: expand_to_fused of TileKernels before 2.1.0, where 0 tokens leave the result unwritten.
    """
    check_maps("expand_to_fused", x, token_topk_to_pos, pos_to_expert)
    if out is not None:
        wanted = (pos_to_expert.shape[0], x.shape[1])
        check_tensor("expand_to_fused out", out, [x.dtype], wanted, x.device)
    params = {
        "num_tokens": x.shape[0],
        "num_topk": token_topk_to_pos.shape[1],
        "num_expanded_tokens": pos_to_expert.shape[0],
        "row_bytes": x.shape[1] * x.element_size(),
    }
    args = (x, token_topk_to_pos, pos_to_expert)
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(
    x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor
) -> torch.Tensor:
    """The output of a call, not filled."""
    return x.new_empty((pos_to_expert.shape[0], x.shape[1]))


def check_maps(
    op: str, x: torch.Tensor, token_topk_to_pos: torch.Tensor, pos_to_expert: torch.Tensor
) -> None:
    """Raise unless a row a token, its places and the experts of all places fit together."""
    import torch

    check_tensor(f"{op} x", x, [], ("num_tokens", "hidden"))
    what = f"{op} token_topk_to_pos"
    check_tensor(what, token_topk_to_pos, [torch.int32], (x.shape[0], "num_topk"), x.device)
    if not 1 <= token_topk_to_pos.shape[1] <= MAX_TOPK:
        raise bad_value(what, tuple(token_topk_to_pos.shape), f"1 to {MAX_TOPK} columns")
    what = f"{op} pos_to_expert"
    check_tensor(what, pos_to_expert, [torch.int32], ("num_expanded_tokens",), x.device)
    if not x.shape[1]:
        raise bad_value(f"{op} x", tuple(x.shape), "at least 1 column")
