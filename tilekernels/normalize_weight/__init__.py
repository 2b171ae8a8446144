"""normalize_weight: weights of a token's experts, divided by their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_outputs, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor topk_weights) -> (Tensor, Tensor)"
MAX_TOPK = 32
EPSILON = 1e-20

_name = "tilekernels.normalize_weight"


def normalize_weight(
    topk_weights: torch.Tensor,
    *,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    platform: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of every token's weights plus 1e-20, and the weights divided by it.

    The sum runs over a binary tree: column j takes column j + 16, then j + 8, j + 4, j + 2, j + 1,
    missing columns left out; this is the order in which the gates add. A row of zeros gives zeros.
    NaN and infinities follow IEEE arithmetic. Differentiable.

    Args:
        topk_weights: float32 (num_tokens, num_topk), contiguous; num_topk from 1 to 32.
        out: (denominator, normalized_weights), contiguous; written and returned.
        platform: a platform to force; by default the device of ``topk_weights`` decides.

    Returns:
        denominator float32 (num_tokens,), normalized_weights float32 (num_tokens, num_topk).

    Raises:
        TypeError, ValueError: dtype, shape, stride or device that is not legal.

    Source: the definition of tile-kernels 2.1.0.
    """
    _check(topk_weights, out)
    tokens, topk = topk_weights.shape
    params = {"num_tokens": tokens, "num_topk": topk}
    found: tuple[torch.Tensor, torch.Tensor] = dispatch.call(
        _name, (topk_weights,), params, out=out, platform=platform
    )
    return found


def allocate(topk_weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of a call, not filled."""
    import torch

    return topk_weights.new_empty(topk_weights.shape[:1]), torch.empty_like(topk_weights)


def _check(topk_weights: torch.Tensor, out: tuple[torch.Tensor, torch.Tensor] | None) -> None:
    import torch

    what = "normalize_weight topk_weights"
    check_tensor(what, topk_weights, [torch.float32], ("num_tokens", "num_topk"))
    tokens, topk = topk_weights.shape
    if not 1 <= topk <= MAX_TOPK:
        raise bad_value(what, tuple(topk_weights.shape), f"1 to {MAX_TOPK} columns")
    shapes = {"denominator": (tokens,), "normalized_weights": (tokens, topk)}
    check_outputs("normalize_weight", out, torch.float32, shapes, topk_weights.device)
