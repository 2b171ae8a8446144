"""The derivative of sqrt(softplus) from its value, as a fixed sequence of float32 operations.

With y = sqrt(log(1 + exp(x))) and q = y * y: dy/dx = (1 - exp(-q)) / (2 y). Below q = 1 the
difference would lose bits, and (1 - exp(-q)) / (2 q) is a polynomial in q: interpolation at
Chebyshev nodes, own work, error under half a unit in the last place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SLOPE = (
    6.4538158767391e-05, -0.0006503874901682138, 0.004137752577662468, -0.02082342468202114,
    0.08333170413970947, -0.24999989569187164, 0.5,
)  # fmt: skip
"""(1 - exp(-q)) / (2 q) for 0 <= q <= 1, from q**6 down."""


def slope(y: torch.Tensor) -> torch.Tensor:
    """dy/dx for y >= 0; 0 at 0."""
    import torch

    from tilekernels.gating.scoring import exp, horner

    q = y * y
    large = (1 - exp(-q)) * 0.5 / y
    return torch.where(q < 1, y * horner(q, SLOPE), large)
