"""Expert-parallel combine: expert outputs back to their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.handle import EPHandle


def combine(
    x: torch.Tensor,
    handle: EPHandle,
    bias: torch.Tensor | None = None,
    *,
    buffer: EPBuffer,
) -> torch.Tensor:
    """Differentiable :meth:`EPBuffer.combine`: bf16 [t, H] from the rows of experts.

    The backward pass is a dispatch in cached mode: every row gets the gradient of its token.

    Args:
        x: bf16 [R, H] or [X, H], the rows of the handle.
        handle: of the dispatch.
        bias: bf16 [t, H] added first, such as the output of shared experts.
        buffer: its ranks all make this call, and all run its backward pass.

    Raises:
        As :meth:`EPBuffer.combine`.
    """
    from ep_comm.autograd import Combine

    found: torch.Tensor = Combine.apply(x, bias, handle, buffer)
    return found
