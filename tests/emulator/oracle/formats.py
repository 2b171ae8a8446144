"""Floats of at most 16 bits by enumeration: a code's value, and a real number's code.

Rounding looks the number up between two neighbours in the sorted table of all values, so it shares
nothing with arithmetic on exponents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

ROUNDINGS = ("R", "A", "F", "C", "Z", "O", "H")
"""Nearest even, nearest away, down, up, to zero, to odd, half away.

TileLang's docstring calls A "away from zero"; in AscendNPU-IR's list of modes it is C's ``round``,
to nearest with ties away, which is what H is as well. We follow that list.
"""


@dataclass(frozen=True)
class Format:
    """Sign, ``exp`` exponent bits, ``man`` mantissa bits.

    ``top`` says what the highest exponent means: ``ieee`` infinity and NaN, ``nan`` one NaN code a
    sign, ``finite`` numbers only.
    """

    name: str
    exp: int
    man: int
    top: str

    @property
    def sign(self) -> int:
        return 1 << (self.exp + self.man)

    @cached_property
    def values(self) -> np.ndarray:
        """The finite values of sign 0 in order of their codes 0, 1, 2, ..."""
        codes = np.arange(self.sign, dtype=np.int64)
        e, m = codes >> self.man, codes & ((1 << self.man) - 1)
        bias = (1 << (self.exp - 1)) - 1
        fraction = np.where(e == 0, m, m + (1 << self.man)).astype(np.float64)
        values = np.ldexp(fraction, np.maximum(e, 1) - bias - self.man)
        finite = {"ieee": self.sign - (1 << self.man), "nan": self.sign - 1, "finite": self.sign}
        return values[: finite[self.top]]

    @property
    def largest(self) -> int:
        """Code of the largest finite value."""
        return len(self.values) - 1

    @property
    def infinity(self) -> int:
        return self.largest + 1

    @property
    def nan(self) -> int:
        """The quiet NaN without payload; formats without NaN give zero."""
        if self.top == "ieee":
            return self.infinity | 1 << (self.man - 1)
        return self.largest + 1 if self.top == "nan" else 0

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Codes to float64."""
        magnitude = (codes & (self.sign - 1)).astype(np.int64)
        value = self.values[np.minimum(magnitude, self.largest)]
        if self.top == "ieee":
            value = np.where(magnitude == self.infinity, np.inf, value)
        special = self.infinity + 1 if self.top == "ieee" else self.largest + 1
        value = np.where(magnitude >= special, np.nan, value)
        return np.where(codes & self.sign, -value, value)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        return np.isnan(self.decode(codes))

    def encode(self, x: np.ndarray, mode: str = "R", saturate: bool = False) -> np.ndarray:
        """Float64 to codes, as integers of 64 bits.

        Beyond the largest value a number saturates when asked to (infinities too) or when the mode
        rounds towards zero there; otherwise it becomes infinity, or NaN where there is none.
        Formats of finite numbers only always saturate.
        """
        x = np.asarray(x, np.float64)
        negative = np.signbit(x)
        size = np.where(np.isnan(x), 0.0, np.abs(x))
        values = self.values
        beyond = values[-1] + (values[-1] - values[-2])  # the value one code further
        table = np.append(values, beyond)
        low = np.minimum(np.searchsorted(table, size, side="right") - 1, self.largest)
        below, above = table[low], table[low + 1]
        exact, odd = size == below, (low & 1) == 1
        with np.errstate(invalid="ignore"):
            tie = size - below == above - size
            nearer_above = size - below > above - size
        up = {
            "R": nearer_above | (tie & odd),
            "A": nearer_above | tie,
            "H": nearer_above | tie,
            "F": negative,
            "C": ~negative,
            "Z": np.zeros_like(negative),
            "O": ~odd,
        }[mode]
        code = low + (up & ~exact)
        inwards = {"F": ~negative, "C": negative, "Z": True, "O": True}.get(mode, False)
        over = (code > self.largest) | (size >= beyond)
        replaced = np.where(
            (saturate | (self.top == "finite")) | (inwards & np.isfinite(x)),
            self.largest,
            self.infinity if self.top == "ieee" else self.nan,
        )
        code = np.where(over, replaced, code)
        code = np.where(np.isnan(x), self.nan, code)
        return code + np.where(negative, self.sign, 0)


F16 = Format("f16", 5, 10, "ieee")
BF16 = Format("bf16", 8, 7, "ieee")
E4M3 = Format("e4m3", 4, 3, "nan")
E5M2 = Format("e5m2", 5, 2, "ieee")
E2M1 = Format("e2m1", 2, 1, "finite")
E1M2 = Format("e1m2", 1, 2, "finite")


def decode_e8m0(codes: np.ndarray) -> np.ndarray:
    """A bare exponent: 2 to the (code - 127), 255 is NaN."""
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))
