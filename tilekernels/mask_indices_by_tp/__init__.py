"""mask_indices_by_tp: keep the experts of one tensor-parallel rank, numbered as that rank does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_int, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor indices, int n, int num_ep_ranks, int tp_rank, int num_tp_ranks) -> Tensor"
MAX_N = (1 << 31) - 1

_name = "tilekernels.mask_indices_by_tp"


def mask_indices_by_tp(
    indices: torch.Tensor,
    n: int,
    num_ep_ranks: int,
    tp_rank: int,
    num_tp_ranks: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Indices of the experts that ``tp_rank`` holds, in its own numbering; -1 for all others.

    Expert e lives on rank r = e // (n // num_ep_ranks). It is kept where r % num_tp_ranks is
    ``tp_rank``; the experts of a group of num_tp_ranks ranks then count as one rank's.

    Args:
        indices: int64 (num_tokens, num_topk), contiguous; no expert where it is negative or from
            2**31 on.
        n: experts of all ranks, at least num_ep_ranks, below 2**31.
        num_ep_ranks: at least 1.
        tp_rank: 0 to num_tp_ranks - 1.
        num_tp_ranks: at least 1.
        out: int64 (num_tokens, num_topk), contiguous, on the same device; written and returned. It
            may be ``indices`` itself.
        platform: a platform to force; by default the device of ``indices`` decides.

    Returns:
        int64 (num_tokens, num_topk).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: mask_indices_by_tp of TileKernels before 2.1.0.
    """
    import torch

    what = "mask_indices_by_tp"
    check_tensor(f"{what} indices", indices, [torch.int64], ("num_tokens", "num_topk"))
    check_int(f"{what} num_ep_ranks", num_ep_ranks, 1, MAX_N)
    check_int(f"{what} n", n, num_ep_ranks, MAX_N)
    check_int(f"{what} num_tp_ranks", num_tp_ranks, 1, MAX_N)
    check_int(f"{what} tp_rank", tp_rank, 0, num_tp_ranks - 1)
    if n // num_ep_ranks * num_tp_ranks > MAX_N:
        most = MAX_N // (n // num_ep_ranks)
        raise bad_value(f"{what} num_tp_ranks", num_tp_ranks, "below 2**31 experts a group", most)
    if out is not None:
        check_tensor(f"{what} out", out, [torch.int64], tuple(indices.shape), indices.device)
    params = {"num_indices": indices.numel()}
    args = (indices, n, num_ep_ranks, tp_rank, num_tp_ranks)
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(
    indices: torch.Tensor, n: int, num_ep_ranks: int, tp_rank: int, num_tp_ranks: int
) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return torch.empty_like(indices)
