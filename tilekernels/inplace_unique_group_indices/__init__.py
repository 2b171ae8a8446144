"""inplace_unique_group_indices: every group of a token once, repeats become -1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_int, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor(a!) group_indices, int num_groups) -> ()"
MAX_TOPK = 32

_name = "tilekernels.inplace_unique_group_indices"


def inplace_unique_group_indices(
    group_indices: torch.Tensor, num_groups: int, *, platform: str | None = None
) -> None:
    """Set to -1, in place, every index that stands further left in its row already.

    Negative indices stay as they are. Indices are compared as 64-bit integers, those from
    ``num_groups`` on as well: no value traps.

    Args:
        group_indices: int64 (num_tokens, num_topk), contiguous; num_topk from 1 to 32. Written.
        num_groups: at least 1; part of upstream's signature, where it is at most 128. Any number is
            served here.
        platform: a platform to force; by default the device of ``group_indices`` decides.

    Raises:
        TypeError, ValueError: dtype, shape, stride or limit that is not legal.

    Source: inplace_unique_group_indices of TileKernels before 2.1.0.
    """
    import torch

    what = "inplace_unique_group_indices group_indices"
    check_tensor(what, group_indices, [torch.int64], ("num_tokens", "num_topk"))
    if not 1 <= group_indices.shape[1] <= MAX_TOPK:
        raise bad_value(what, tuple(group_indices.shape), f"1 to {MAX_TOPK} columns")
    check_int("inplace_unique_group_indices num_groups", num_groups, 1)
    params = {"num_tokens": group_indices.shape[0], "num_topk": group_indices.shape[1]}
    dispatch.call(_name, (group_indices, num_groups), params, platform=platform)


def allocate(group_indices: torch.Tensor, num_groups: int) -> None:
    """No output: the argument is written."""
