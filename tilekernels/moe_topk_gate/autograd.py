"""Gradient of moe_topk_gate with respect to the logits: the op moe_topk_gate_backward.

Indices, weights of shared experts and of random tokens carry no gradient. That of an auxiliary loss
over the scores is asked of the op itself, which takes both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ascendkit import platform as platforms
from ascendkit.registry import op

BACKWARD = "tilekernels.moe_topk_gate_backward"


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
        ctx.scale, ctx.scoring, ctx.platform = given[4], given[6], platform
        ctx.mark_non_differentiable(idx)
        return idx, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: torch.Tensor, grad: torch.Tensor) -> tuple[Any, ...]:
        """Gradient of the logits, second of the inputs."""
        scores, unmapped, weights = ctx.saved_tensors
        args = (scores, unmapped.contiguous(), weights, grad.contiguous(), ctx.scale, ctx.scoring)
        return (None, gradient(args, ctx.platform), *(None for _ in range(16)))


def gradient(args: tuple[Any, ...], platform: str | None) -> torch.Tensor:
    """What the op gives; its torch operations, on any device, where a platform has no kernel."""
    from tilekernels.moe_topk_gate_backward import moe_topk_gate_backward

    if torch.compiler.is_compiling() or _has_kernel(args[0].device.type, platform):
        return moe_topk_gate_backward(*args, platform=platform)
    found: torch.Tensor = op(BACKWARD).load("reference").reference(*args, None, None)
    return found


def _has_kernel(device: str, platform: str | None) -> bool:
    return platforms.current(device, platform) in op(BACKWARD).platforms()
