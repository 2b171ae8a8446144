"""topk_sum_and_topk_group_idx: the groups of experts whose best experts are best together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from tilekernels.arguments import check_int, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor scores, int num_topk_sum, int num_topk_groups) -> Tensor"
MAX_GROUPS = 32

_name = "tilekernels.topk_sum_and_topk_group_idx"
_what = "topk_sum_and_topk_group_idx"


def topk_sum_and_topk_group_idx(
    scores: torch.Tensor,
    num_topk_sum: int,
    num_topk_groups: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """The ``num_topk_groups`` groups with the largest sum of their ``num_topk_sum`` best scores.

    Descending sum; equal sums by group, the smaller first. A NaN score counts as -inf, and so does
    a sum of infinities of both signs. 0 tokens return at once.

    Args:
        scores: float32 (num_tokens, num_groups, experts_per_group), contiguous; at most 32 groups.
        num_topk_sum: 1 or 2, at most ``experts_per_group``.
        num_topk_groups: 1 to ``num_groups``.
        out: int64 (num_tokens, num_topk_groups), contiguous; written and returned.
        platform: a platform to force; by default the device of ``scores`` decides.

    Returns:
        int64 (num_tokens, num_topk_groups).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: the definition of TileKernels before 2.0, extended to non-finite scores.
    """
    import torch

    check_tensor(
        f"{_what} scores", scores, [torch.float32], ("num_tokens", "num_groups", "per_group")
    )
    tokens, groups, per_group = scores.shape
    check_int(f"{_what} num_groups", groups, 1, MAX_GROUPS)
    check_int(f"{_what} experts of a group", per_group, 1)
    check_int(f"{_what} num_topk_sum", num_topk_sum, 1, min(2, per_group))
    check_int(f"{_what} num_topk_groups", num_topk_groups, 1, groups)
    if out is not None:
        shape = (tokens, num_topk_groups)
        check_tensor(f"{_what} out", out, [torch.int64], shape, scores.device)
    params = {
        "num_tokens": tokens,
        "num_groups": groups,
        "per_group": per_group,
        "num_topk_groups": num_topk_groups,
    }
    found: torch.Tensor = dispatch.call(
        _name, (scores, num_topk_sum, num_topk_groups), params, out=out, platform=platform
    )
    return found


def allocate(scores: torch.Tensor, num_topk_sum: int, num_topk_groups: int) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return scores.new_empty((scores.shape[0], num_topk_groups), dtype=torch.int64)
