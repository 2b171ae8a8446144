"""Gradient of expand_to_fused: the sum over a token's places, which is reduce_fused.

That is the adjoint for maps that fit each other: every row a token names is a copy of its own.
"""

from __future__ import annotations

from typing import Any

import torch


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep the places."""
    ctx.save_for_backward(inputs[1])
    ctx.platform = inputs[-1]


def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
    """Gradient of the rows."""
    from tilekernels.reduce_fused import reduce_fused

    (places,) = ctx.saved_tensors
    return reduce_fused(grad.contiguous(), None, places, platform=ctx.platform), None, None, None
