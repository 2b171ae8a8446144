"""Scores from logits, as a fixed sequence of float32 operations: equal bits on every machine.

Exponentials of math libraries differ in the last bit from machine to machine, and a gate decides by
that bit. So the exponential and the softplus are polynomials here, every operation rounded once (to
nearest), fused multiply-adds named as such. Errors against exact arithmetic: under 3 units in the
last place (tests/tilekernels), for softmax those of its arguments' differences on top. A score
below exp(-87), 1.6e-38, is 0.

- sqrtsoftplus: sqrt(log(1 + exp(x))). With a = exp(-abs(x) / 2) and l = a * G(a * a), where
  G(q) = sqrt(log1p(q) / q): l for x <= 0, sqrt(x + l * l) for x > 0. No x is too small for it.
- sigmoid: 1 / (1 + exp(-x)).
- softmax: exponentials against the row's maximum, over their sum. The sum is taken in integers of
  2**-36, so it does not depend on its order.

Logits are taken as finite: a NaN and -inf as the least float, +inf as the largest.

Polynomials are interpolations at Chebyshev nodes, own work; the split of softplus at 0 is as in
tile-kernels 2.1.0's Ascend kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit.errors import unknown
from ascendkit.exact import fma
from tilekernels.gating import SCORING

if TYPE_CHECKING:
    import torch

LARGEST = 3.4028234663852886e38
"""The largest float."""
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440054690583e-4
"""log(2) in two parts; products of the first with small integers are exact."""
ROUND = 1.5 * 2.0**23
"""Added, it leaves a float's nearest integer in the low bits."""
LEAST = -87.0
"""Arguments below it give 0."""
EXP = (0.0014295615, 0.008363173, 0.04166101, 0.16666578, 0.5000002, 1.0, 1.0)
"""exp(r) for abs(r) <= log(2) / 2, from r**6 down."""
G = (
    -0.0009758715, 0.006040385, -0.01759627, 0.03346091, -0.049819097,
    0.0670396, -0.0910012, 0.13540582, -0.24999967, 1.0,
)  # fmt: skip
"""sqrt(log1p(q) / q) for 0 <= q <= 1, from q**9 down."""
FIXED = 2.0**18
"""Exponentials are cut into two integers of 18 bits."""
MAX_SUMMED = 8191
"""As many exponentials fit the 32-bit sums."""


def score(logits: torch.Tensor, scoring: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(scores, ranking keys without bias) of float32 (rows, experts).

    Ranking goes by scores, for softmax by the logits themselves: one order, no exponential in it.
    """
    x = logits.nan_to_num(nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST)
    if scoring == "sqrtsoftplus":
        found = sqrt_softplus(x)
        return found, found
    if scoring == "sigmoid":
        found = sigmoid(x)
        return found, found
    if scoring == "softmax":
        return softmax(x), x
    raise unknown("scoring_func", scoring, SCORING)


def exp(y: torch.Tensor) -> torch.Tensor:
    """exp(y) for y <= 0; 0 below ``LEAST``."""
    import torch

    shifted = fma(y, LOG2_E, ROUND)
    n = shifted - ROUND
    r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, y))
    p = horner(r, EXP)
    power = shifted.view(torch.int32) << 23
    scaled = (p.view(torch.int32) + power).view(torch.float32)
    return torch.where(y >= LEAST, scaled, 0.0)


def horner(x: torch.Tensor, coefficients: tuple[float, ...]) -> torch.Tensor:
    """A polynomial, highest power first, by fused multiply-adds."""
    import torch

    found = torch.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        found = fma(found, x, c)
    return found


def sqrt_softplus(x: torch.Tensor) -> torch.Tensor:
    """sqrt(log(1 + exp(x)))."""
    import torch

    a = exp(x.abs() * -0.5)
    low = a * horner(a * a, G)
    # Through float64: the square root of float32 tensors is not always rounded to nearest on CPUs.
    return torch.where(x > 0, fma(low, low, x).double().sqrt().float(), low)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-x))."""
    import torch

    e = exp(-x.abs())
    return torch.where(x > 0, 1.0, e) / (1.0 + e)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Exponentials of a row over their sum."""
    import torch

    e = exp(x - x.amax(-1, keepdim=True))
    scaled = e * FIXED
    whole = scaled.trunc()
    rest = ((scaled - whole) * FIXED).round()
    high, low = (part.to(torch.int64).sum(-1, keepdim=True).float() for part in (whole, rest))
    return e / fma(low, FIXED**-2, high * (1 / FIXED))
