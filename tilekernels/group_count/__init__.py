"""group_count: how often every group was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_int, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor group_idx, int num_groups) -> Tensor"
MAX_GROUPS = 8192
"""Counters of a histogram on chip: 32 KiB."""

_name = "tilekernels.group_count"


def group_count(
    group_idx: torch.Tensor,
    num_groups: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Histogram of ``group_idx``; indices outside 0 to num_groups - 1, such as -1, do not count.

    Args:
        group_idx: int64 (num_tokens, num_topk), contiguous.
        num_groups: 1 to 8192.
        out: int32 (num_groups,), contiguous, on the same device; written and returned.
        platform: a platform to force; by default the device of ``group_idx`` decides.

    Returns:
        int32 (num_groups,).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: group_count of TileKernels before 2.1.0.
    """
    import torch

    check_indices("group_count group_idx", group_idx)
    check_int("group_count num_groups", num_groups, 1, MAX_GROUPS)
    if out is not None:
        check_tensor("group_count out", out, [torch.int32], (num_groups,), group_idx.device)
    params = {"num_indices": group_idx.numel(), "num_groups": num_groups}
    args = (group_idx, num_groups)
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(group_idx: torch.Tensor, num_groups: int) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return group_idx.new_empty((num_groups,), dtype=torch.int32)


def check_indices(what: str, idx: torch.Tensor) -> None:
    """Raise unless ``idx`` is int64 (num_tokens, num_topk) with at least one column."""
    import torch

    check_tensor(what, idx, [torch.int64], ("num_tokens", "num_topk"))
    if not idx.shape[1]:
        raise bad_value(what, tuple(idx.shape), "at least 1 column")
