"""layout: where every token of this rank goes, and at which slot it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ascendkit import dispatch
from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor topk_idx, int num_experts, int num_ranks) -> Tensor"
MAX_TOPK, MAX_EXPERTS, MAX_RANKS = 32, 2048, 1024

_name = "ep_comm.layout"


class Layout(NamedTuple):
    """Counts and slots of one rank's tokens; views of one int32 tensor.

    Args:
        num_tokens_per_rank: [N], tokens sent to each rank; a token counts once a rank.
        num_tokens_per_expert: [E], choices of each expert.
        slot: [t, k], at the last choice of a token on a rank: how many earlier tokens go to that
            rank; -1 at every other choice.
    """

    num_tokens_per_rank: torch.Tensor
    num_tokens_per_expert: torch.Tensor
    slot: torch.Tensor


def layout(
    topk_idx: torch.Tensor,
    num_experts: int,
    num_ranks: int,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Count the receivers of every token and number the tokens of every receiver.

    Args:
        topk_idx: int64 (t, k), contiguous; experts distinct within a token, -1 for no choice.
        num_experts: E, a multiple of ``num_ranks``; rank r holds experts [r * E/N, (r + 1) * E/N).
        num_ranks: N ranks (or nodes) that share the experts.
        out: int32 (N + E + t * k,), contiguous, on the same device; written and returned.
        platform: a platform to force; by default the device of ``topk_idx`` decides.

    Returns:
        int32 (N + E + t * k,): tokens of every rank, choices of every expert, slots; see
        :func:`unpack`.

    Raises:
        TypeError, ValueError: dtype, shape, stride or limit that is not legal.

    Source: dispatch layout and deduplication of DeepEP 2.5.0.
    """
    _check(topk_idx, num_experts, num_ranks, out)
    params = {
        "num_tokens": topk_idx.shape[0],
        "num_topk": topk_idx.shape[1],
        "num_experts": num_experts,
        "num_ranks": num_ranks,
    }
    args = (topk_idx, num_experts, num_ranks)
    chosen = platforms.current(topk_idx.device.type, platform)
    return dispatch.call(_name, args, params, out=out, platform=chosen)


def unpack(flat: torch.Tensor, topk_idx: torch.Tensor, num_experts: int, num_ranks: int) -> Layout:
    """The three results inside the one tensor."""
    ranks, experts, slot = flat.split([num_ranks, num_experts, topk_idx.numel()])
    return Layout(ranks, experts, slot.view(topk_idx.shape))


def allocate(topk_idx: torch.Tensor, num_experts: int, num_ranks: int) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    size = num_ranks + num_experts + topk_idx.numel()
    return topk_idx.new_empty((size,), dtype=torch.int32)


def _check(
    topk_idx: torch.Tensor, num_experts: int, num_ranks: int, out: torch.Tensor | None
) -> None:
    import torch

    if not isinstance(topk_idx, torch.Tensor):
        raise bad_type("layout topk_idx", topk_idx, "a torch.Tensor")
    if topk_idx.dtype != torch.int64:
        raise TypeError(f"layout topk_idx: got {topk_idx.dtype}, wanted torch.int64")
    if topk_idx.dim() != 2 or not 1 <= topk_idx.shape[1] <= MAX_TOPK:
        raise bad_value(
            "layout topk_idx", tuple(topk_idx.shape), f"(num_tokens, 1 to {MAX_TOPK} choices)"
        )
    if not topk_idx.is_contiguous():
        raise bad_value("layout topk_idx strides", topk_idx.stride(), "contiguous")
    for name, got, most in (
        ("num_ranks", num_ranks, MAX_RANKS),
        ("num_experts", num_experts, MAX_EXPERTS),
    ):
        if not isinstance(got, int) or isinstance(got, bool):
            raise bad_type(f"layout {name}", got, "an int")
        if not 1 <= got <= most:
            raise bad_value(f"layout {name}", got, f"1 to {most}", min(max(got, 1), most))
    if num_experts % num_ranks:
        near = max(num_experts // num_ranks, 1) * num_ranks
        raise bad_value("layout num_experts", num_experts, f"a multiple of {num_ranks}", near)
    size = num_ranks + num_experts + topk_idx.numel()
    if out is not None and (
        out.dtype != torch.int32
        or out.shape != (size,)
        or not out.is_contiguous()
        or out.device != topk_idx.device
    ):
        raise bad_value(
            "layout out",
            f"{out.dtype} {tuple(out.shape)} on {out.device}",
            f"contiguous torch.int32 ({size},) on {topk_idx.device}",
        )
