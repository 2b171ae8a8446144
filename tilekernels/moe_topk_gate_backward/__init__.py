"""moe_topk_gate_backward: gradient of the logits of a gate, from that of its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit.errors import bad_value, unknown
from tilekernels.arguments import check_float32, check_tensor
from tilekernels.gating import SCORING, SLOTS

if TYPE_CHECKING:
    import torch

SCHEMA = (
    "(Tensor scores, Tensor topk_idx, Tensor topk_weights, Tensor grad_topk_weights,"
    " float routed_scaling_factor, str scoring_func, Tensor? mask, Tensor? grad_scores_sum)"
    " -> Tensor"
)

_name = "tilekernels.moe_topk_gate_backward"
_what = "moe_topk_gate_backward"


def moe_topk_gate_backward(
    scores: torch.Tensor,
    topk_idx: torch.Tensor,
    topk_weights: torch.Tensor,
    grad_topk_weights: torch.Tensor,
    routed_scaling_factor: float,
    scoring_func: str = "sqrtsoftplus",
    mask: torch.Tensor | None = None,
    grad_scores_sum: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    *,
    platform: str | None = None,
) -> torch.Tensor:
    """Gradient of the logits of ``moe_topk_gate``.

    With u the scores of a token, D the sum of its chosen ones plus 1e-20 and weights
    w = routed_scaling_factor * u / D: dL/du_j = (routed_scaling_factor * g_j - sum of g w) / D,
    added up where an expert was chosen twice. An auxiliary loss sees, for every sequence, the sum
    over its tokens of u / sum(u); with its gradient h, tokens of the ``mask`` get
    (h - sum(h u) / sum(u)) / sum(u) on top. Both go through the derivative of the scoring
    function. Bits are equal on every platform.

    Args:
        scores: float32 (num_tokens, num_routed_experts), contiguous, as the gate gave them.
        topk_idx: int64 (num_tokens, num_topk), contiguous: logical experts
            (``unmapped_topk_idx`` of the gate); what is no expert, such as -1, has no gradient.
            num_topk from 1 to 32.
        topk_weights, grad_topk_weights: float32 (num_tokens, num_topk or more), contiguous; columns
            from num_topk on, those of shared experts, are not looked at.
        routed_scaling_factor, scoring_func: what the gate was called with.
        mask: bool (num_tokens,); where the auxiliary term applies. Together with:
        grad_scores_sum: float32 (num_sequences, num_routed_experts), contiguous; sequences are
            equally long, one after the other. Tokens whose scores are all 0 get no such term.
        out: float32 like ``scores``, contiguous; written and returned.
        platform: a platform to force; by default the device of ``scores`` decides.

    Returns:
        float32 (num_tokens, num_routed_experts).

    Raises:
        TypeError, ValueError: dtype, shape, stride, device or limit that is not legal.

    Source: the definition of tile-kernels 2.1.0, extended to sigmoid and softmax and to any number
    of experts.
    """
    import torch

    floats = [torch.float32]
    check_tensor(f"{_what} scores", scores, floats, ("num_tokens", "num_experts"))
    (tokens, experts), device = scores.shape, scores.device
    check_tensor(f"{_what} topk_idx", topk_idx, [torch.int64], (tokens, "num_topk"), device)
    topk = topk_idx.shape[1]
    if not 1 <= topk <= SLOTS:
        raise bad_value(f"{_what} topk_idx", tuple(topk_idx.shape), f"1 to {SLOTS} columns")
    if not experts:
        raise bad_value(f"{_what} scores", tuple(scores.shape), "at least 1 column")
    named = {"topk_weights": topk_weights, "grad_topk_weights": grad_topk_weights}
    for name, given in named.items():
        check_tensor(f"{_what} {name}", given, floats, (tokens, "slots"), device)
        if given.shape[1] < topk:
            raise bad_value(f"{_what} {name}", tuple(given.shape), f"at least {topk} columns")
    factor = routed_scaling_factor
    check_float32(f"{_what} routed_scaling_factor", factor)
    if scoring_func not in SCORING:
        raise unknown("scoring_func", scoring_func, SCORING)
    if (mask is None) != (grad_scores_sum is None):
        raise bad_value(f"{_what} mask and grad_scores_sum", "one of them", "both or neither")
    if grad_scores_sum is not None:
        check_tensor(f"{_what} mask", mask, [torch.bool], (tokens,), device)
        name = f"{_what} grad_scores_sum"
        check_tensor(name, grad_scores_sum, floats, ("num_sequences", experts), device)
        if not grad_scores_sum.shape[0] or tokens % grad_scores_sum.shape[0]:
            rule = f"a number of sequences that divides {tokens} tokens"
            raise bad_value(name, tuple(grad_scores_sum.shape), rule)
    if out is not None:
        check_tensor(f"{_what} out", out, floats, (tokens, experts), device)
    params = {"num_tokens": tokens, "num_experts": experts, "num_topk": topk}
    args = (
        scores, topk_idx, topk_weights, grad_topk_weights, float(factor), scoring_func, mask,
        grad_scores_sum,
    )  # fmt: skip
    found: torch.Tensor = dispatch.call(_name, args, params, out=out, platform=platform)
    return found


def allocate(scores: torch.Tensor, *rest: object) -> torch.Tensor:
    """The output of a call, not filled."""
    import torch

    return torch.empty_like(scores)
