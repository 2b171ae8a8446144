"""Scalar functions in float64, and how far float32 and float16 versions may lie from them.

float32 functions are those of the C library: exact ones are exact, square root is correctly
rounded, the others lie within the units listed. float16 functions are computed in float32 and
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Function = Callable[..., np.ndarray]


def _each(f: Callable[[float], float]) -> Function:
    return np.vectorize(f, otypes=[np.float64])


def round_half_away(x: np.ndarray) -> np.ndarray:
    """C's ``round``."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), np.copysign(whole, x))


# name -> (function, units in the last place, smallest and largest ordinary argument)
FUNCTIONS: dict[str, tuple[Function, int, float, float]] = {
    "sqrt": (np.sqrt, 0, 0.0, 100.0),
    "rsqrt": (lambda x: 1.0 / np.sqrt(x), 2, 0.01, 100.0),
    "exp": (np.exp, 1, -8.0, 8.0),
    "exp2": (np.exp2, 1, -8.0, 8.0),
    "exp10": (lambda x: np.power(10.0, x), 1, -4.0, 4.0),
    "log": (np.log, 1, 0.01, 100.0),
    "log2": (np.log2, 1, 0.01, 100.0),
    "log10": (np.log10, 3, 0.01, 100.0),
    "log1p": (np.log1p, 3, -0.9, 100.0),
    "tanh": (np.tanh, 3, -4.0, 4.0),
    "tan": (np.tan, 2, -1.5, 1.5),
    "sin": (np.sin, 1, -7.0, 7.0),
    "cos": (np.cos, 1, -7.0, 7.0),
    "atan": (np.arctan, 2, -9.0, 9.0),
    "erf": (_each(math.erf), 2, -3.0, 3.0),
    "floor": (np.floor, 0, -99.0, 99.0),
    "ceil": (np.ceil, 0, -99.0, 99.0),
    "fabs": (np.abs, 0, -99.0, 99.0),
    "round": (round_half_away, 0, -9.0, 9.0),
    "trunc": (np.trunc, 0, -99.0, 99.0),
}
EDGES = (0.0, -0.0, math.inf, math.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, -2.5)
"""Arguments every function is also given."""
