"""moe_topk_gate: experts and weights of every token, from logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit import dispatch
from ascendkit.errors import bad_value
from tilekernels.arguments import check_tensor
from tilekernels.gating import arguments

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor logits, int num_topk, bool use_shared_as_routed, int num_shared_experts,"
    " float routed_scaling_factor, int ep_rank, str scoring_func, Tensor? mask, Tensor? bias,"
    " Tensor? image_bias, Tensor? image_token_mask, Tensor? fix_routing_mask,"
    " Tensor? to_physical_map, Tensor? logical_count, Tensor(a!)? unmapped_topk_idx,"
    " Tensor? force_random, Tensor(b!)? scores) -> (Tensor, Tensor)"
)

_name = "tilekernels.moe_topk_gate"
_what = "moe_topk_gate"


def moe_topk_gate(
    logits: torch.Tensor,
    num_topk: int,
    use_shared_as_routed: bool,
    num_shared_experts: int,
    routed_scaling_factor: float,
    ep_rank: int,
    scoring_func: str = "sqrtsoftplus",
    mask: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    image_bias: torch.Tensor | None = None,
    image_token_mask: torch.Tensor | None = None,
    fix_routing_mask: torch.Tensor | None = None,
    to_physical_map: torch.Tensor | None = None,
    logical_count: torch.Tensor | None = None,
    unmapped_topk_idx: torch.Tensor | None = None,
    force_random: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    scores: torch.Tensor | None = None,
    *,
    platform: str | None = None,
    check_values: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Route every token to its ``num_topk`` experts.

    Experts are the largest of score plus bias, equal ones by index; weights are the scores without
    bias over their sum (plus 1e-20), times ``routed_scaling_factor``. See
    ``tilekernels/gating/routing.py`` for what comes before that, and ``scoring.py`` for the scores:
    bits are equal on every platform. Differentiable in ``logits``, through the weights.

    Args:
        logits: float32 (num_tokens, num_routed_experts), contiguous. A NaN counts as -inf, and
            infinities as the largest floats; nothing traps.
        num_topk: 1 to min(num_routed_experts, 32).
        use_shared_as_routed: append the shared experts, as logical experts behind the routed ones,
            with weight 1.
        num_shared_experts: 1 or 2, where they are used; at most 32 experts a token in all.
        routed_scaling_factor: factor of the weights of routed experts.
        ep_rank: decides, with the token, which copy of an expert serves it; also seeds
            ``force_random``. 0 to 2**31 - 1.
        scoring_func: ``sqrtsoftplus``, ``sigmoid`` or ``softmax`` (which ranks by logit plus bias).
        mask: bool (num_tokens,); False gives index -1, weight 0, scores 0.
        bias: float32 (num_routed_experts,).
        image_bias, image_token_mask: float32 (num_routed_experts,) that takes the place of ``bias``
            for tokens where the bool (num_tokens,) is True.
        fix_routing_mask: bool (num_tokens,); True takes the experts from ``unmapped_topk_idx``.
            One may occur twice; what is no expert counts as -1, with weight 0.
        to_physical_map: int32 (logical experts, copies), with ``logical_count`` int32 (logical
            experts,), how many copies each has: returned indices are physical.
        unmapped_topk_idx: int64 (num_tokens, num_topk), rows at any distance; receives the logical
            experts, -1 where the token is masked or random.
        force_random: bool (num_tokens,); True gives distinct physical experts and weights in
            (0, 1), uniformly drawn (Philox of ``ep_rank`` and the token); scores 0.
        out: (topk_idx, topk_weights), contiguous; written and returned.
        scores: float32 like ``logits``, contiguous; receives the scores, without bias.
        platform: a platform to force; by default the device of ``logits`` decides.
        check_values: raise for NaN logits, fixed indices and counts out of range. By default on
            ``reference`` and ``emulator`` only; not looked at while a graph is traced.

    Returns:
        topk_idx int64 and topk_weights float32, (num_tokens, num_topk + shared experts).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device, limit or value that is not legal.

    Source: tile-kernels 2.1.0, extended to other scoring functions, any number of experts, more
    than 92,037 tokens, and values it traps on.
    """
    import torch

    arguments.check_logits(_what, logits, num_topk)
    arguments.check_numbers(_what, routed_scaling_factor, ep_rank, scoring_func)
    shared = arguments.shared_experts(_what, use_shared_as_routed, num_shared_experts, num_topk)
    given = {
        "fix_routing_mask": fix_routing_mask,
        "to_physical_map": to_physical_map,
        "logical_count": logical_count,
        "unmapped_topk_idx": unmapped_topk_idx,
    }
    arguments.check_options(
        _what, logits, num_topk, shared, mask=mask, bias=bias, image_bias=image_bias,
        image_token_mask=image_token_mask, force_random=force_random, **given,
    )  # fmt: skip
    if scores is not None:
        check_tensor(f"{_what} scores", scores, [torch.float32], logits.shape, logits.device)
    _check_out(logits, num_topk + shared, out)
    arguments.check_values(_what, logits, shared, platform, check_values, **given)
    args = (
        logits, num_topk, bool(shared), shared, float(routed_scaling_factor), ep_rank, scoring_func,
        mask, bias, image_bias, image_token_mask, fix_routing_mask, to_physical_map, logical_count,
        unmapped_topk_idx, force_random, scores,
    )  # fmt: skip
    if logits.requires_grad and torch.is_grad_enabled():
        if out is not None:
            raise bad_value(f"{_what} out", "tensors", "None where logits require a gradient")
        from tilekernels.moe_topk_gate.autograd import differentiable

        return differentiable(args, platform)
    return run(args, out, platform)


moe_topk_gate_forward = moe_topk_gate


def in_schema_order(
    *args: Any,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
    platform: str | None = None,
    check_values: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with the arguments of ``SCHEMA``, for loops over ops: ``scores`` comes last."""
    return moe_topk_gate(
        *args[:-1], out=out, scores=args[-1], platform=platform, check_values=check_values
    )


def run(
    args: tuple[Any, ...], out: tuple[torch.Tensor, torch.Tensor] | None, platform: str | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Dispatch checked arguments."""
    logits = args[0]
    params = {
        "num_tokens": logits.shape[0],
        "num_experts": logits.shape[1],
        "num_topk": args[1],
        "shared": args[3],
        "copies": 1 if args[12] is None else args[12].shape[1],
        "scoring": args[6],
    }
    found: tuple[torch.Tensor, torch.Tensor] = dispatch.call(
        _name, args, params, out=out, platform=platform
    )
    return found


def allocate(
    logits: torch.Tensor, num_topk: int, use_shared: bool, num_shared: int, *rest: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of a call, not filled."""
    import torch

    shape = (logits.shape[0], num_topk + (num_shared if use_shared else 0))
    return logits.new_empty(shape, dtype=torch.int64), logits.new_empty(shape)


def _check_out(logits: torch.Tensor, slots: int, out: Any) -> None:
    import torch

    if out is None:
        return
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise bad_value(f"{_what} out", type(out).__name__, "None or (topk_idx, topk_weights)")
    for name, got, dtype in zip(("topk_idx", "topk_weights"), out, (torch.int64, torch.float32)):
        check_tensor(f"{_what} out {name}", got, [dtype], (logits.shape[0], slots), logits.device)
