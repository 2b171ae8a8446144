"""Arithmetic torch lacks on the CPU, exact to the last bit: what references are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def fma(a: torch.Tensor | float, b: torch.Tensor | float, c: torch.Tensor | float) -> torch.Tensor:
    """float32 ``a * b + c``, rounded once (to nearest, ties to even).

    Tensors broadcast; Python numbers count as the float32 nearest to them. A product of two
    float32 is exact in float64. The sum is rounded there to odd: a double whose last bit tells that
    something was cut off rounds to float32 as the exact sum does (Boldo and Melquiond, 2008).
    """
    import torch

    x, y, z = (torch.as_tensor(v, dtype=torch.float32).double() for v in (a, b, c))
    product = x * y
    total = product + z
    # Knuth's two-sum: what the addition lost, exactly.
    rest = total - product
    lost = (product - (total - rest)) + (z - rest)
    bits = total.view(torch.int64)
    # Magnitudes order as their bits do, so one bit up is away from zero.
    toward = torch.where((lost > 0) == (total > 0), 1, -1)
    inexact = (lost != 0) & ((bits & 1) == 0) & total.isfinite() & (total != 0)
    return torch.where(inexact, bits + toward, bits).view(torch.float64).float()
