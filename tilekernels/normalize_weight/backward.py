"""Gradient of normalize_weight, in torch operations that run on every device.

With n = w / d and d = sum of w + 1e-20: dw_j = (g_j - sum of g_k n_k) / d + h, where g is the
gradient of the normalized weights and h that of the denominator.
"""

from __future__ import annotations

from typing import Any

import torch


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    """Keep both outputs."""
    ctx.save_for_backward(*output)


def backward(
    ctx: Any, grad_denominator: torch.Tensor, grad_normalized: torch.Tensor
) -> tuple[torch.Tensor, None]:
    """Gradient of the weights; none of the platform."""
    denominator, normalized = ctx.saved_tensors
    inner = (grad_normalized * normalized).sum(-1, keepdim=True)
    grad = (grad_normalized - inner) / denominator[:, None] + grad_denominator[:, None]
    return grad, None
