"""fma is held against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from ascendkit.exact import fma
from ascendkit.testing import generator, normal, wide


def rounded(exact: Fraction) -> float:
    """The float32 nearest to a rational, ties to even; within float32's range."""
    if exact == 0:
        return 0.0
    size = abs(exact)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power = max(power - (Fraction(2) ** power > size), -126)
    units = size / Fraction(2) ** (power - 23)
    whole = units.numerator // units.denominator
    rest = units - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    return (1 if exact > 0 else -1) * float(whole) * 2.0 ** (power - 23)


@pytest.mark.parametrize("spread", [3, 60])
def test_fma_rounds_once(spread: int, seed: int) -> None:
    g = generator(seed)
    a, b = (wide((400,), g, low=-spread, high=spread) for _ in range(2))
    # Sums that cancel to the last bits, and sums of unlike size.
    near = -(a.double() * b.double() * (1 + normal((400,), g).double() * 2.0**-24))
    for c in (near.float(), wide((400,), g, low=-spread, high=spread)):
        got = fma(a, b, c).tolist()
        rows = zip(a.tolist(), b.tolist(), c.tolist())
        want = [rounded(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in rows]
        assert got == want


def test_fma_at_a_midpoint() -> None:
    # (1 + 2^-12)^2 lies between two floats; what is added decides, however small.
    x = torch.tensor([1.0 + 2.0**-12])
    low, high = 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-23
    assert [fma(x, x, c).item() for c in (-(2.0**-100), 0.0, 2.0**-100)] == [low, low, high]


def test_fma_of_what_is_not_finite() -> None:
    inf, nan = float("inf"), float("nan")
    assert fma(torch.tensor([inf, -inf, 3.0]), 2.0, 1.0).tolist() == [inf, -inf, 7.0]
    assert fma(torch.tensor([nan, inf]), 1.0, torch.tensor([1.0, -inf])).isnan().all()
