"""What the CUDA programs of topk agree on: layouts, flags, and keys that order as values do."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

WARP = 32
PLACE_BITS = 24
LAST_PLACE = (1 << PLACE_BITS) - 1
NOWHERE = 0x7FFFFFFF
SETS = 8
"""Where, in the CTA's state, three sets of two counters take turns."""
TIES = 64
"""Candidates that are ranked one by one rather than by more digits."""
ORDER_NONE, ORDER_VALUE, ORDER_INDEX = 0, 1, 2
HAS_BEGIN, HAS_END, HAS_OFFSET, HAS_PAGES, HAS_VALUES = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Format:
    """How a dtype is laid out and ordered.

    Args:
        word: integer type of one element.
        bits: its width.
        per_vector: elements of a 16-byte load.
        vectors: loads a thread has in flight for half a block.
        inf: bits of +inf.
    """

    word: str
    bits: int
    per_vector: int
    vectors: int
    inf: int


FORMATS = {
    "bfloat16": Format("int16", 16, 8, 4, 0x7F80),
    "float16": Format("int16", 16, 8, 4, 0x7C00),
    "float32": Format("int32", 32, 4, 4, 0x7F800000),
}


def block_elements(dtype: str, threads: int) -> int:
    """Elements of a row visited between two looks at the order: two halves."""
    f = FORMATS[dtype]
    return 2 * f.vectors * f.per_vector * threads


def keys(dtype: str) -> Any:
    """Expressions over unsigned words: constants, keys of values, values of keys.

    Keys keep the order of values with NaN on top and -0 as +0; 16-bit types use the lower half.
    """
    from tilelang import language as T

    f = FORMATS[dtype]
    SIGN, ONES = 1 << (f.bits - 1), (1 << f.bits) - 1
    INF_KEY, NAN_KEY = f.inf | SIGN, ONES - 1
    narrow = f.bits == 16

    def u(n):
        return T.Cast("uint32", T.int64(n)) if n > 0x7FFFFFFF else T.uint32(n)

    def is_(x, n):
        # Equality with an unsigned constant is solved as an equation, and its negative overflows.
        return (x ^ u(n)) == u(0)

    def key_of(bits):
        magnitude = bits & u(ONES >> 1)
        flipped = T.if_then_else((bits & u(SIGN)) != 0, (~bits) & u(ONES), bits | u(SIGN))
        some = T.if_then_else(is_(bits, SIGN), u(SIGN), flipped)
        return T.if_then_else(T.Cast("int32", magnitude) > f.inf, u(NAN_KEY), some)

    def value_of(key):
        """Bits of a value with that key."""
        return T.if_then_else((key & u(SIGN)) != 0, key & u(ONES >> 1), (~key) & u(ONES))

    def packed(bits):
        return bits | (bits << u(16)) if narrow else bits

    def reached(key):
        """What `not <=` makes of "at or above this key"; NaN as a limit lets everything pass."""
        before = T.if_then_else(is_(key, SIGN), u(SIGN - 2), (key - u(1)) & u(ONES))
        over = T.Cast("int64", key) > INF_KEY
        return packed(T.if_then_else(over, u(f.inf), value_of(before)))

    return SimpleNamespace(**{k: v for k, v in locals().items() if k not in ("T", "f", "dtype")})
