"""Gradient of moe_topk_gate with respect to the logits, in torch operations for every device.

With u the scores of a token's experts, D their sum plus 1e-20 and w = scale u / D the weights:
dL/du_j = (scale g_j - sum of g_k w_k) / D. Experts that occur twice add up. Then du/dx:
(1 - exp(-u^2)) / (2 u) for sqrtsoftplus, u (1 - u) for sigmoid, and for softmax u (d - sum of d u).
Indices, weights of shared experts and of random tokens carry no gradient.
"""

from __future__ import annotations

from typing import Any

import torch

from tilekernels.gating import EPSILON


def differentiable(
    args: tuple[Any, ...], platform: str | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gate for checked arguments of its SCHEMA, with a gradient."""
    found: tuple[torch.Tensor, torch.Tensor] = Gate.apply(platform, *args)
    return found


class Gate(torch.autograd.Function):
    """Keeps scores and logical experts of the forward pass."""

    @staticmethod
    def forward(ctx: Any, platform: str | None, *args: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the gate; scores and logical experts are kept even where nobody asked for them."""
        from tilekernels.moe_topk_gate import run

        given = list(args)
        logits, topk = given[0], given[1]
        if given[14] is None:
            given[14] = logits.new_empty((len(logits), topk), dtype=torch.int64)
        if given[16] is None:
            given[16] = torch.empty_like(logits)
        idx, weights = run(tuple(given), None, platform)
        # A caller may use its tensors again before the backward pass.
        unmapped, scores = (given[i] if args[i] is None else given[i].clone() for i in (14, 16))
        ctx.save_for_backward(scores, unmapped, weights)
        ctx.scale, ctx.scoring = given[4], given[6]
        ctx.mark_non_differentiable(idx)
        return idx, weights

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor, grad: torch.Tensor) -> tuple[Any, ...]:
        """Gradient of the logits, second of the inputs."""
        scores, unmapped, weights = ctx.saved_tensors
        found = gradient(scores, unmapped, weights, grad, ctx.scale, ctx.scoring)
        return (None, found, *(None for _ in range(16)))


def gradient(
    scores: torch.Tensor,
    unmapped: torch.Tensor,
    weights: torch.Tensor,
    grad: torch.Tensor,
    scale: float,
    scoring: str,
) -> torch.Tensor:
    """float32 like ``scores``; ``weights`` and ``grad`` may have columns of shared experts."""
    topk = unmapped.shape[1]
    valid = unmapped >= 0
    at = unmapped.clamp(min=0)
    chosen = scores.gather(1, at).where(valid, 0.0)
    g = grad[:, :topk].where(valid, 0.0)
    inner = (g * weights[:, :topk]).sum(1, keepdim=True)
    du = ((scale * g - inner) / (chosen.sum(1, keepdim=True) + EPSILON)).where(valid, 0.0)
    dense = torch.zeros_like(scores).scatter_add(1, at, du)
    if scoring == "softmax":
        return scores * (dense - (dense * scores).sum(1, keepdim=True))
    if scoring == "sigmoid":
        return dense * scores * (1 - scores)
    slope = -torch.expm1(-scores * scores) / (2 * scores)
    return dense * slope.where(scores > 0, 0.0)
