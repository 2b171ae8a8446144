"""Dispatch and combine as autograd functions: each is the other's backward pass."""

from __future__ import annotations

from typing import Any

import torch


class Dispatch(torch.autograd.Function):
    """See :func:`ep_comm.dispatch.dispatch`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        topk_weights: torch.Tensor | None,
        topk_idx: torch.Tensor,
        buffer: Any,
        num_experts: int,
        alignment: int,
        do_expand: bool,
        taken: list[Any],
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        recv_x, recv_idx, recv_weights, handle, _ = buffer.dispatch(
            x, topk_idx, topk_weights, num_experts=num_experts, expert_alignment=alignment,
            do_expand=do_expand, do_zero_padding=do_expand,
        )  # fmt: skip
        ctx.buffer, ctx.handle, ctx.weighted = buffer, handle, topk_weights is not None
        taken += [recv_idx, handle]
        return recv_x, recv_weights

    @staticmethod
    def backward(
        ctx: Any, grad_x: torch.Tensor, grad_weights: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        # Autograd fills what has no gradient with zeros, so every rank sends the same planes.
        weights = None
        if ctx.weighted and grad_weights is not None:
            weights = grad_weights.contiguous()
        x, w, _ = ctx.buffer.combine(grad_x.contiguous(), ctx.handle, weights)
        return x, w, None, None, None, None, None, None


class Combine(torch.autograd.Function):
    """See :func:`ep_comm.combine.combine`."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, bias: torch.Tensor | None, handle: Any, buffer: Any
    ) -> torch.Tensor:
        ctx.buffer, ctx.handle, ctx.biased = buffer, handle, bias is not None
        out: torch.Tensor = buffer.combine(x.contiguous(), handle, bias=bias)[0]
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        handle = ctx.handle
        rows = ctx.buffer.dispatch(
            grad.contiguous(), handle=handle,
            do_expand=handle.do_expand, do_zero_padding=handle.do_expand,
        )[0]  # fmt: skip
        return rows, grad if ctx.biased else None, None, None
