"""reduce_fused: the weighted sum of a token's rows in the expert-major layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value, unknown
from tilekernels.arguments import check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor x, Tensor? x_sf, Tensor? topk_weights, Tensor token_topk_to_pos, str fp8_format, "
    "Tensor? sf) -> Tensor"
)
MAX_TOPK = 32

_name = "tilekernels.reduce_fused"


def reduce_fused(
    x: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str = "",
    sf: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    *,
    platform: str | None = None,
) -> torch.Tensor:
    """Sum over k of x[pos] * s with pos = token_topk_to_pos[n, k], in the order of k.

    s is topk_weights[n, k] * x_sf[pos], rounded to float32, without the factors that are not given.
    The sum starts at +0.0 and runs by float32 fused multiply-adds; places below 0 (or beyond ``x``)
    are left out, whatever they would have added. One rounding to the output's type follows, to
    nearest even; e4m3 output is multiplied by ``sf`` in float32 first, and saturates at 448, NaN
    staying NaN. Differentiable in ``x`` and the weights where the output is no e4m3.

    Args:
        x: float32, bfloat16 or float16 (num_expanded_tokens, hidden), contiguous; or a pair with
            scales float32 (num_expanded_tokens,).
        topk_weights: float32 (num_tokens, num_topk), contiguous, or None for ones.
        token_topk_to_pos: int32 (num_tokens, num_topk), contiguous; num_topk from 1 to 32.
        fp8_format: "e4m3" for float8_e4m3fn output, "" for that of ``x``.
        sf: float32 (1,), with e4m3 output only.
        out: (num_tokens, hidden), contiguous; written and returned.
        platform: a platform to force; by default the device of ``x`` decides.

    Returns:
        (num_tokens, hidden).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or format that is not legal.

    Source: reduce_fused of TileKernels before 2.1.0, for any hidden instead of multiples of 256.
    """
    if isinstance(x, (tuple, list)) and len(x) != 2:
        raise bad_value("reduce_fused x", f"{len(x)} tensors", "a tensor, or data and scales")
    data, x_sf = x if isinstance(x, (tuple, list)) else (x, None)
    args = (data, x_sf, topk_weights, token_topk_to_pos, fp8_format, sf)
    return in_schema_order(*args, out=out, platform=platform)


def in_schema_order(
    x: torch.Tensor,
    x_sf: torch.Tensor | None,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str,
    sf: torch.Tensor | None,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """:func:`reduce_fused` with data and scales apart."""
    args = (x, x_sf, topk_weights, token_topk_to_pos, fp8_format, sf)
    _check(*args, out)
    params = {
        "num_tokens": token_topk_to_pos.shape[0],
        "num_topk": token_topk_to_pos.shape[1],
        "hidden": x.shape[1],
        "dtype": str(x.dtype).removeprefix("torch."),
        "form": "8" if fp8_format else "",
    }
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(
    x: torch.Tensor,
    x_sf: torch.Tensor | None,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str = "",
    sf: torch.Tensor | None = None,
) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    dtype = torch.float8_e4m3fn if fp8_format else x.dtype
    return x.new_empty((token_topk_to_pos.shape[0], x.shape[1]), dtype=dtype)


def _check(
    x: torch.Tensor,
    x_sf: torch.Tensor | None,
    topk_weights: torch.Tensor | None,
    token_topk_to_pos: torch.Tensor,
    fp8_format: str,
    sf: torch.Tensor | None,
    out: torch.Tensor | None,
) -> None:
    import torch

    what, f32 = "reduce_fused", [torch.float32]
    kinds = [torch.float32, torch.bfloat16, torch.float16]
    check_tensor(f"{what} x", x, kinds, ("num_expanded_tokens", "hidden"))
    if not x.shape[1]:
        raise bad_value(f"{what} x", tuple(x.shape), "at least 1 column")
    where, device = ("num_tokens", "num_topk"), x.device
    check_tensor(f"{what} token_topk_to_pos", token_topk_to_pos, [torch.int32], where, device)
    tokens, topk = token_topk_to_pos.shape
    if not 1 <= topk <= MAX_TOPK:
        raise bad_value(f"{what} token_topk_to_pos", (tokens, topk), f"1 to {MAX_TOPK} columns")
    if x_sf is not None:
        check_tensor(f"{what} x_sf", x_sf, f32, (x.shape[0],), device)
    if topk_weights is not None:
        check_tensor(f"{what} topk_weights", topk_weights, f32, (tokens, topk), device)
    if fp8_format not in ("", "e4m3"):
        raise unknown(f"{what} fp8_format", fp8_format, ("", "e4m3"))
    if sf is not None:
        check_tensor(f"{what} sf", sf, f32, (1,), device)
        if not fp8_format:
            raise bad_value(f"{what} sf", "a tensor", "None without fp8_format", None)
    if out is not None:
        dtype = torch.float8_e4m3fn if fp8_format else x.dtype
        check_tensor(f"{what} out", out, [dtype], (tokens, x.shape[1]), device)
