"""The derivative of sqrt(softplus) from its value, as a fixed sequence of float32 operations.

With y = sqrt(log(1 + exp(x))) and q = y * y: dy/dx = (1 - exp(-q)) / (2 y). The exponential is
2**n * exp(r), and 1 - exp(-q) = (1 - 2**n) - 2**n * (exp(r) - 1) loses no bits where q is small,
since n is 0 there. Below ``SMALL`` the quotient is y / 2 to the last bit but one.

1 / y comes from the bits of y, a guess within 6 %, a step that cubes its error and one that squares
it: no division, so no branch, and the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SMALL = 2.0**-12
LARGE = 87.0
"""exp(-q) is nothing beside 1 long before."""
EXPM1 = (0.00139336498, 0.00836915523, 0.0416664667, 0.166665047, 0.5, 1.0)
"""(exp(r) - 1) / r for abs(r) <= log(2) / 2, from r**5 down; own interpolation."""
HALF = 126 << 23
"""Bits of one half."""
RECIPROCAL = 0x7EF311C3
"""Less the bits of a positive float: about the bits of its reciprocal."""


def slope(y: torch.Tensor) -> torch.Tensor:
    """dy/dx for y >= 0; 0 at 0."""
    import torch

    from ascendkit.exact import fma
    from tilekernels.gating.scoring import LN2_HIGH, LN2_LOW, LOG2_E, ROUND, horner

    q = (y * y).clamp(max=LARGE)
    shifted = fma(q, -LOG2_E, ROUND)
    n = shifted - ROUND
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, -q))
    # Half of 2**n, for half of the quotient.
    power = ((shifted.view(torch.int32) << 23) + HALF).view(torch.float32)
    rest = fma(-power, r * horner(r, EXPM1), 0.5 - power)
    divisor = y.clamp(min=SMALL)
    inverse = (RECIPROCAL - divisor.view(torch.int32)).view(torch.float32)
    error = fma(-divisor, inverse, 1.0)
    inverse = fma(inverse, fma(error, error, error), inverse)
    inverse = fma(inverse, fma(-divisor, inverse, 1.0), inverse)
    return torch.where(y < SMALL, y * 0.5, rest * inverse)
