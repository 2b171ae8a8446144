"""top2_sum_gate: experts from a token's best groups, and those of this tensor-parallel rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_int
from tilekernels.gating import SLOTS, arguments

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor logits, Tensor bias, int num_topk, int num_topk_groups, int num_groups,"
    " bool use_shared_as_routed, int num_shared_experts, float routed_scaling_factor, int ep_rank,"
    " int num_ep_ranks, int tp_rank, int num_tp_ranks, str scoring_func, Tensor? mask,"
    " Tensor? fix_routing_mask, Tensor? to_physical_map, Tensor? logical_count,"
    " Tensor(a!)? unmapped_topk_idx) -> (Tensor, Tensor)"
)

_name = "tilekernels.top2_sum_gate"
_what = "top2_sum_gate"


def top2_sum_gate(
    logits: torch.Tensor,
    bias: torch.Tensor,
    num_topk: int,
    num_topk_groups: int,
    num_groups: int,
    use_shared_as_routed: bool,
    num_shared_experts: int,
    routed_scaling_factor: float,
    ep_rank: int,
    num_ep_ranks: int,
    tp_rank: int,
    num_tp_ranks: int,
    scoring_func: str,
    mask: torch.Tensor | None = None,
    fix_routing_mask: torch.Tensor | None = None,
    to_physical_map: torch.Tensor | None = None,
    logical_count: torch.Tensor | None = None,
    unmapped_topk_idx: torch.Tensor | None = None,
    *,
    platform: str | None = None,
    check_values: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Route every token to experts of its ``num_topk_groups`` best groups.

    A group is as good as the sum of its two best experts. The rest is ``moe_topk_gate``, which see
    for arguments of the same name. Indices are then those of tensor-parallel rank ``tp_rank`` (see
    ``mask_indices_by_tp``), -1 for experts of other ranks. No gradient.

    Args:
        num_topk_groups, num_groups: equal, or both 0, for no limit; else at most 32 groups, which
            divide the experts.
        num_ep_ranks, tp_rank, num_tp_ranks: experts, with the copies a map adds, are spread over
            ``num_ep_ranks``; of ``num_tp_ranks`` in a row, ``tp_rank`` is this one.

    Returns:
        topk_idx int64 and topk_weights float32, (num_tokens, num_topk + shared experts).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device, limit or value that is not legal.

    Source: TileKernels before 2.0; sums of weights in the order of ``moe_topk_gate``.
    """
    arguments.check_logits(_what, logits, num_topk)
    arguments.check_numbers(_what, routed_scaling_factor, ep_rank, scoring_func)
    shared = arguments.shared_experts(_what, use_shared_as_routed, num_shared_experts, num_topk)
    given = {
        "fix_routing_mask": fix_routing_mask,
        "to_physical_map": to_physical_map,
        "logical_count": logical_count,
        "unmapped_topk_idx": unmapped_topk_idx,
    }
    if bias is None:
        raise bad_value(f"{_what} bias", None, "a tensor")
    arguments.check_options(_what, logits, num_topk, shared, mask=mask, bias=bias, **given)
    tokens, experts = logits.shape
    check_int(f"{_what} num_groups", num_groups, 0, experts)
    check_int(f"{_what} num_topk_groups", num_topk_groups, min(num_groups, 1), num_groups)
    if num_groups != num_topk_groups and (num_groups > SLOTS or experts % num_groups):
        rule = f"at most {SLOTS}, a divisor of {experts} experts"
        raise bad_value(f"{_what} num_groups", num_groups, rule)
    extra = 0 if to_physical_map is None else to_physical_map.shape[1] - 1
    if shared > extra:
        raise bad_value(f"{_what} num_shared_experts", shared, f"at most the {extra} added copies")
    check_int(f"{_what} num_ep_ranks", num_ep_ranks, 1, experts + extra)
    check_int(f"{_what} num_tp_ranks", num_tp_ranks, 1, 2**15)
    check_int(f"{_what} tp_rank", tp_rank, 0, num_tp_ranks - 1)
    arguments.check_values(_what, logits, shared, platform, check_values, **given)
    params = {
        "num_tokens": tokens,
        "num_experts": experts,
        "num_topk": num_topk,
        "shared": shared,
        "num_groups": num_groups,
    }
    args = (
        logits, bias, num_topk, num_topk_groups, num_groups, bool(shared), shared,
        float(routed_scaling_factor), ep_rank, num_ep_ranks, tp_rank, num_tp_ranks, scoring_func,
        mask, fix_routing_mask, to_physical_map, logical_count, unmapped_topk_idx,
    )  # fmt: skip
    found: tuple[torch.Tensor, torch.Tensor] = dispatch.call(_name, args, params, platform=platform)
    return found


def allocate(
    logits: torch.Tensor, bias: torch.Tensor, num_topk: int, *rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of a call, not filled."""
    import torch

    shape = (logits.shape[0], num_topk + (rest[3] if rest[2] else 0))
    return logits.new_empty(shape, dtype=torch.int64), logits.new_empty(shape)
