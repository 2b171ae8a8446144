"""Expert-parallel dispatch: tokens to the ranks that hold their experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.handle import EPHandle


def dispatch(
    x: torch.Tensor,
    topk_idx: torch.Tensor,
    topk_weights: torch.Tensor | None = None,
    *,
    buffer: EPBuffer,
    num_experts: int,
    expert_alignment: int = 1,
    do_expand: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, EPHandle]:
    """Differentiable :meth:`EPBuffer.dispatch` of bf16 tokens.

    The backward pass is a combine with the same handle: gradients of a token's copies are summed in
    choice order, in float32, rounded to bf16 once a level.

    Args:
        x: bf16 [t, H].
        topk_idx: int64 [t, k].
        topk_weights: float32 [t, k] or None; gradients come back by choice.
        buffer: its ranks all make this call, and all run its backward pass.
        num_experts, expert_alignment, do_expand: as in :meth:`EPBuffer.dispatch`. Gap rows of the
            expanded layout are zero.

    Returns:
        (recv_x, recv_topk_idx, recv_topk_weights, handle).

    Raises:
        As :meth:`EPBuffer.dispatch`.
    """
    from ep_comm.autograd import Dispatch

    taken: list[Any] = []
    recv_x, recv_weights = Dispatch.apply(
        x, topk_weights, topk_idx, buffer, num_experts, expert_alignment, do_expand, taken
    )
    return recv_x, taken[0], recv_weights, taken[1]
