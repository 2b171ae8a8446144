"""Gradient of reduce_fused, in torch operations that run on every device.

A row gets its token's gradient times its scale; a weight the scale of its row times the product of
row and gradient. Scales of quantised rows get none.
"""

from __future__ import annotations

from typing import Any

import torch


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep the inputs."""
    x, x_sf, weights, places, fp8_format, _, _ = inputs
    ctx.save_for_backward(x, x_sf, weights, places)
    ctx.quantised = bool(fp8_format)


def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Gradients of the rows and of the weights."""
    if ctx.quantised:
        raise ValueError("reduce_fused: got e4m3 output, wanted fp8_format '' for a gradient")
    x, x_sf, weights, places = ctx.saved_tensors
    grad = grad.float()
    grad_x = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    grad_weights = None if weights is None else torch.zeros_like(weights)
    for k, column in enumerate(places.unbind(1)):
        here = ((column >= 0) & (column < x.shape[0])).nonzero()[:, 0]
        at, mine = column[here].long(), grad[here]
        scale = torch.ones_like(at, dtype=torch.float32) if x_sf is None else x_sf[at]
        if grad_weights is not None:
            grad_weights[here, k] = (x[at].float() * mine).sum(-1) * scale
            scale = scale * weights[here, k]
        grad_x.index_add_(0, at, mine * scale[:, None])
    return grad_x.to(x.dtype), None, grad_weights, None, None, None, None
