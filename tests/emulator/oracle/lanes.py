"""Lane-wise arithmetic, on values: float64 for floats, the integer type for integers.

A float result computed in float64 and then rounded once to float32, float16 or bfloat16 is the
correctly rounded one for +, -, *, / and square root (53 >= 2 * 24 + 2 bits).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.emulator.oracle.types import Lane

Op = Callable[..., np.ndarray]


def _quiet(f: Op) -> Op:
    def run(*args: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return f(*args)

    return run


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    # Integers truncate. By zero: all ones (guessed).
    wide_x, wide_y = x.astype(object), np.where(y == 0, 1, y).astype(object)
    quotient = abs(wide_x) // abs(wide_y) * np.where((x < 0) != (y < 0), -1, 1)
    return np.where(y == 0, -1, quotient)


def _larger(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NaN wins and -0 is below +0 (both guessed)."""
    if x.dtype.kind != "f":
        return np.maximum(x, y)
    pick_x = (x > y) | ((x == y) & ~np.signbit(x))
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(pick_x, x, y))


def _smaller(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f":
        return np.minimum(x, y)
    return -_larger(-x, -y)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), x, np.where(x > 0, x, np.zeros_like(x)))


def _negate(x: np.ndarray) -> np.ndarray:
    return -x if x.dtype.kind == "f" else np.zeros_like(x) - x


BINARY: dict[str, Op] = {
    "add": _quiet(lambda x, y: x + y),
    "sub": _quiet(lambda x, y: x - y),
    "mul": _quiet(lambda x, y: x * y),
    "div": _quiet(_divide),
    "max": _quiet(_larger),
    "min": _quiet(_smaller),
    "prelu": _quiet(lambda x, y: np.where(x >= 0, x, x * y)),
}
UNARY: dict[str, Op] = {
    "neg": _quiet(_negate),
    "abs": _quiet(np.abs),
    "relu": _quiet(_relu),
    "sqrt": _quiet(np.sqrt),
    "exp": _quiet(np.exp),
    "ln": _quiet(np.log),
}
BITWISE: dict[str, Op] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}
COMPARE: dict[str, Op] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def binary(op: str, lane: Lane, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Codes in, codes out."""
    if op in BITWISE:
        return BITWISE[op](a, b)
    return lane.codes(BINARY[op](lane.values(a), lane.values(b)))


def unary(op: str, lane: Lane, a: np.ndarray) -> np.ndarray:
    """Codes in, codes out."""
    return BITWISE[op](a) if op in BITWISE else lane.codes(UNARY[op](lane.values(a)))


def abs_sub(lane: Lane, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a - b|, the difference rounded first: the magnitude of a rounded number is exact."""
    return unary("abs", lane, binary("sub", lane, a, b))


def exp_sub(lane: Lane, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """exp(a - b), the difference rounded to the lane type first (inferred)."""
    return unary("exp", lane, binary("sub", lane, a, b))


def compare(op: str, lane: Lane, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Codes in, truth out. A NaN equals nothing."""
    return COMPARE[op](lane.values(a), lane.values(b))


def fma(lane: Lane, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z with one rounding.

    The product of two floats of at most 24 bits is exact in float64. The sum there is rounded to
    odd, by its exact error, so that the last rounding sees on which side of a tie it lies.
    """
    if lane.kind in "us":
        with np.errstate(over="ignore"):
            return lane.codes(lane.values(x) * lane.values(y) + lane.values(z))
    with np.errstate(all="ignore"):
        product, addend = lane.values(x) * lane.values(y), lane.values(z)
        total = product + addend
        part = total - product
        error = (product - (total - part)) + (addend - part)
        even = (np.ascontiguousarray(total).view(np.uint64) & np.uint64(1)) == 0
        inexact = np.isfinite(total) & (error != 0) & even
        towards = np.where(error > 0, np.inf, -np.inf)
        return lane.codes(np.where(inexact, np.nextafter(total, towards), total))


def shift(lane: Lane, a: np.ndarray, by: np.ndarray, left: bool) -> np.ndarray:
    """Shift by signed amounts; below 0, or a lane width or more, everything leaves (inferred)."""
    width = 8 * lane.bytes
    x = lane.values(a).astype(object)
    amount = np.where((by < 0) | (by >= width), width, by).astype(object)
    moved = x << amount if left else x >> amount
    return (moved & ((1 << width) - 1)).astype(lane.code)


def add_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """32-bit sum and carry out."""
    total = a.astype(np.uint64) + b.astype(np.uint64) + carry.astype(np.uint64)
    return total.astype(np.uint32), (total >> np.uint64(32)).astype(bool)


def sub_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a - b - (1 - carry); the carry out is 1 where nothing was borrowed (TileLang's docstring)."""
    total = a.astype(np.int64) - b.astype(np.int64) - (1 - carry.astype(np.int64))
    return (total & 0xFFFFFFFF).astype(np.uint32), total >= 0


def multiply_wide(lane: Lane, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high half of the 64-bit product of 32-bit lanes."""
    product = lane.values(a).astype(object) * lane.values(b).astype(object)
    low, high = product & 0xFFFFFFFF, (product >> 32) & 0xFFFFFFFF
    return low.astype(np.uint32), high.astype(np.uint32)
