"""Number formats as storage: bytes per value with scales, and which rate a product runs at.

Block scales are counted in the bytes per value, so ``mxfp4`` is 4 bits plus one E8M0 byte per 32.
Casts, codes and scale layouts belong to the quantisation ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ascendkit.errors import unknown


@dataclass(frozen=True)
class Format:
    """One storage format.

    Args:
        bits: bits of a code.
        scale_bytes: bytes of one scale, 0 without scales.
        block: values that share one scale.
        family: what the matrix unit sees: ``fp32``, ``bf16``, ``fp8``, ``hif8``, ``fp4``, ``int8``.
    """

    name: str
    bits: int
    family: str
    scale_bytes: int = 0
    block: int = 1

    @property
    def bytes(self) -> float:
        """Bytes per value, scales included."""
        return float(Fraction(self.bits, 8) + Fraction(self.scale_bytes, self.block))


_ALL = (
    Format("fp32", 32, "fp32"),
    Format("hf32", 32, "hf32"),
    Format("bf16", 16, "bf16"),
    Format("fp16", 16, "bf16"),
    Format("int8", 8, "int8"),
    Format("fp8", 8, "fp8"),
    Format("hif8", 8, "hif8"),
    Format("fp8_1x128", 8, "fp8", 4, 128),
    Format("fp8_128x128", 8, "fp8", 4, 128 * 128),
    Format("fp8_32x32", 8, "fp8", 1, 32 * 32),
    Format("mxfp8", 8, "fp8", 1, 32),
    Format("mxfp4", 4, "fp4", 1, 32),
)
FORMATS = {f.name: f for f in _ALL}


def fmt(name: str) -> Format:
    """A format by name; ValueError naming the nearest."""
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return FORMATS[name]


@lru_cache(maxsize=256)
def width(name: str) -> float:
    """Bytes per value of a format, scales included."""
    return fmt(name).bytes


def product_dtype(a: str, b: str) -> str:
    """The rate class a matrix product of formats ``a`` and ``b`` runs at.

    Equal families run at their own rate; FP8 activations with FP4 weights are ``w4a8``. Eight-bit
    families do not hold each other's values, but BF16 holds all of them; any other mix runs at the
    wider one's rate, whose values include the narrower one's.
    """
    fa, fb = fmt(a).family, fmt(b).family
    if fa == fb:
        return "mxfp4" if fa == "fp4" else fa
    if {fa, fb} == {"fp8", "fp4"}:
        return "w4a8"
    if {fa, fb} <= {"int8", "fp8", "hif8"}:
        return "bf16"
    return max((fa, fb), key=("fp4", "int8", "fp8", "hif8", "bf16", "hf32", "fp32").index)
