"""aux_fi: how often every expert was chosen, relative to an even spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from tilekernels.arguments import check_int, check_tensor
from tilekernels.group_count import MAX_GROUPS, check_indices

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor topk_idx, int num_experts, int num_aux_topk) -> Tensor"

_name = "tilekernels.aux_fi"


def aux_fi(
    topk_idx: torch.Tensor,
    num_experts: int,
    num_aux_topk: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Frequency f of the auxiliary loss: f_e = count_e * num_experts / (num_tokens * num_aux_topk).

    Choices are counted in integers; then one product and one quotient in float32, so that the
    result does not depend on any order. Choices outside 0 to num_experts - 1, such as -1, do not
    count. Without tokens the result is 0. There is no gradient: choices are integers.

    Args:
        topk_idx: int64 (num_tokens, num_topk), contiguous.
        num_experts: 1 to 8192.
        num_aux_topk: choices a token counts for, at least 1.
        out: float32 (num_experts,), contiguous, on the same device; written and returned.
        platform: a platform to force; by default the device of ``topk_idx`` decides.

    Returns:
        float32 (num_experts,).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: aux_fi of TileKernels before 2.1.0; there the sum over blocks is in float32.
    """
    import torch

    check_indices("aux_fi topk_idx", topk_idx)
    check_int("aux_fi num_experts", num_experts, 1, MAX_GROUPS)
    check_int("aux_fi num_aux_topk", num_aux_topk, 1)
    if out is not None:
        check_tensor("aux_fi out", out, [torch.float32], (num_experts,), topk_idx.device)
    params = {"num_indices": topk_idx.numel(), "num_groups": num_experts}
    args = (topk_idx, num_experts, num_aux_topk)
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(topk_idx: torch.Tensor, num_experts: int, num_aux_topk: int) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return topk_idx.new_empty((num_experts,), dtype=torch.float32)
