"""get_fused_mapping: where every choice of an expert goes in the expert-major layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_int, check_tensor

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor topk_idx, int num_experts, int num_expanded_tokens, int alignment) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
MAX_EXPERTS, MAX_TOPK = 1024, 32
MAX_POSITIONS = (1 << 31) - 1

_name = "tilekernels.get_fused_mapping"


def get_fused_mapping(
    topk_idx: torch.Tensor,
    num_experts: int,
    num_expanded_tokens: int,
    alignment: int,
    force_no_sync: bool = False,
    *,
    platform: str | None = None,
) -> tuple[torch.Tensor, ...]:
    """Maps between choices (token, k) and positions in a buffer with one aligned run an expert.

    Expert e owns the positions from expert_start[e] to expert_end[e]: as many as it has entries,
    rounded up to ``alignment``. Entries of an expert stand in the order of (token, k), on every
    platform and in every run. Positions of padding, and those behind the last expert's, hold -1.
    Entries that would stand beyond the buffer are dropped: their place is -1. Choices outside 0 to
    num_experts - 1, such as -1, are none.

    Args:
        topk_idx: int64 (num_tokens, num_topk), contiguous; num_topk from 1 to 32.
        num_experts: 1 to 1024.
        num_expanded_tokens: positions of the buffer. 0: as many as are needed, which reads the
            sizes back and waits for the device (and breaks a traced graph).
        alignment: at least 1.
        force_no_sync: take a ``num_expanded_tokens`` of 0 as it is, and do not wait.
        platform: a platform to force; by default the device of ``topk_idx`` decides.

    Returns:
        pos_to_expert, pos_to_token, pos_to_token_topk (num_expanded_tokens,): expert, token, and
        token * num_topk + k of every position; token_topk_to_pos (num_tokens, num_topk);
        expert_start, expert_end, num_tokens_per_expert (num_experts,), aligned; all int32; and the
        list of the last one where it was read back, else an empty one.

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: get_fused_mapping of TileKernels before 2.1.0.
    """
    _check(topk_idx, num_experts, num_expanded_tokens, alignment)
    if num_expanded_tokens or force_no_sync:
        args = (topk_idx, num_experts, num_expanded_tokens, alignment)
        return *in_schema_order(*args, platform=platform), []
    most = topk_idx.numel() + (alignment - 1) * min(num_experts, topk_idx.numel())
    args = (topk_idx, num_experts, most // alignment * alignment, alignment)
    found = in_schema_order(*args, platform=platform)
    sizes: list[int] = found[-1].tolist()
    size = sum(sizes)
    return *(t[:size] for t in found[:3]), *found[3:], sizes


def in_schema_order(
    topk_idx: torch.Tensor,
    num_experts: int,
    num_expanded_tokens: int,
    alignment: int,
    *,
    out: tuple[torch.Tensor, ...] | None = None,
    platform: str | None = None,
) -> tuple[torch.Tensor, ...]:
    """The seven tensors, for a buffer of exactly ``num_expanded_tokens``; nothing is read back.

    Args:
        out: the seven, contiguous; written and returned.
    """
    _check(topk_idx, num_experts, num_expanded_tokens, alignment)
    if out is not None:
        _check_out(out, topk_idx, num_experts, num_expanded_tokens)
    params = {
        "num_tokens": topk_idx.shape[0],
        "num_topk": topk_idx.shape[1],
        "num_experts": num_experts,
        "num_expanded_tokens": num_expanded_tokens,
    }
    args = (topk_idx, num_experts, num_expanded_tokens, alignment)
    found: tuple[torch.Tensor, ...] = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(
    topk_idx: torch.Tensor, num_experts: int, num_expanded_tokens: int, alignment: int
) -> tuple[torch.Tensor, ...]:
    """The outputs of a call, not filled."""
    import torch

    x, e = (num_expanded_tokens,), (num_experts,)
    shapes = (x, x, x, tuple(topk_idx.shape), e, e, e)
    return tuple(topk_idx.new_empty(s, dtype=torch.int32) for s in shapes)


def _check(
    topk_idx: torch.Tensor, num_experts: int, num_expanded_tokens: int, alignment: int
) -> None:
    import torch

    what = "get_fused_mapping"
    check_tensor(f"{what} topk_idx", topk_idx, [torch.int64], ("num_tokens", "num_topk"))
    if not 1 <= topk_idx.shape[1] <= MAX_TOPK:
        raise bad_value(f"{what} topk_idx", tuple(topk_idx.shape), f"1 to {MAX_TOPK} columns")
    check_int(f"{what} num_experts", num_experts, 1, MAX_EXPERTS)
    check_int(f"{what} num_expanded_tokens", num_expanded_tokens, 0, MAX_POSITIONS)
    check_int(f"{what} alignment", alignment, 1, MAX_POSITIONS)
    if topk_idx.numel() + (alignment - 1) * num_experts > MAX_POSITIONS:
        most = (MAX_POSITIONS - topk_idx.numel()) // num_experts + 1
        raise bad_value(f"{what} alignment", alignment, "fewer than 2**31 positions", most)


def _check_out(
    out: tuple[torch.Tensor, ...], topk_idx: torch.Tensor, num_experts: int, size: int
) -> None:
    import torch

    from tilekernels.arguments import check_outputs

    x, e = (size,), (num_experts,)
    shapes = {
        "pos_to_expert": x, "pos_to_token": x, "pos_to_token_topk": x,
        "token_topk_to_pos": tuple(topk_idx.shape),
        "expert_start": e, "expert_end": e, "num_tokens_per_expert": e,
    }  # fmt: skip
    check_outputs("get_fused_mapping", out, torch.int32, shapes, topk_idx.device)
