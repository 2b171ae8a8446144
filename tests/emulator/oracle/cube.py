"""Fractal layouts of the matrix unit, products, and the conversions on the way out.

Layouts are those that TileLang's ``ascend/layout`` writes down: a tile of rows x columns lies as
[columns / C0][rows / 16][16][C0], C0 elements being 32 bytes; scales of (rows, K / 32) lie as
[rows / 16][pairs][16][2]; an accumulator as [columns / 16][rows / 16][16][16].
"""

from __future__ import annotations

import math

import numpy as np

from tests.emulator.oracle.casts import to_integer
from tests.emulator.oracle.formats import BF16, E1M2, E2M1, E4M3, E5M2, F16, Format, decode_e8m0
from tests.emulator.oracle.types import LANES

FOUR_BIT: dict[str, Format] = {"e2m1x2": E2M1, "e1m2x2": E1M2}


def c0(kind: str) -> int:
    """Elements of 32 bytes."""
    return 64 if kind in FOUR_BIT else 32 // LANES[kind].bytes


def up(n: int, multiple: int) -> int:
    """``n`` rounded up."""
    return -(-n // multiple) * multiple


def fractals(codes: np.ndarray, kind: str) -> np.ndarray:
    """A matrix of codes as the bytes of its tile; missing rows and columns are zero."""
    rows, columns = codes.shape
    width = c0(kind)
    full = np.zeros((up(rows, 16), up(columns, width)), codes.dtype)
    full[:rows, :columns] = codes
    tile = full.reshape(full.shape[0] // 16, 16, full.shape[1] // width, width)
    line = np.ascontiguousarray(tile.transpose(2, 0, 1, 3)).reshape(-1)
    if kind in FOUR_BIT:  # the even element in the low nibble
        return (line[0::2] | line[1::2] << 4).astype(np.uint8)
    return line.view(np.uint8)


def accumulator(values: np.ndarray) -> np.ndarray:
    """A result as the accumulator's fractals: [columns / 16][rows][16] of whole fractals."""
    rows, columns = values.shape
    full = np.zeros((up(rows, 16), up(columns, 16)), values.dtype)
    full[:rows, :columns] = values
    return np.ascontiguousarray(full.reshape(full.shape[0], -1, 16).transpose(1, 0, 2))


def scale_blocks(scales: np.ndarray) -> np.ndarray:
    """E8M0 codes (rows, K / 32) as the bytes of their blocks; rows are whole sixteens."""
    rows, count = scales.shape
    blocks = scales.reshape(rows // 16, 16, count // 2, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(blocks).reshape(-1)


def values(kind: str, codes: np.ndarray) -> np.ndarray:
    """Codes to float64."""
    if kind in FOUR_BIT:
        return FOUR_BIT[kind].decode(codes)
    return LANES[kind].values(codes).astype(np.float64)


def scaled(data: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Each run of 32 K-elements times its scale."""
    return data * np.repeat(decode_e8m0(scales), 32, axis=1)[:, : data.shape[1]]


def hf32(x: np.ndarray, away: bool) -> np.ndarray:
    """Float32 values with 11 mantissa bits kept (guessed), to nearest; ties to even or away."""
    mantissa, exponent = np.frexp(x)
    steps = mantissa * 2.0**12
    rounded = np.rint(steps) if not away else np.copysign(np.floor(np.abs(steps) + 0.5), steps)
    return np.ldexp(rounded, exponent - 12)


def product(a: np.ndarray, b: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """start + a b^T, summed exactly and rounded to float32 once (guessed)."""
    result = np.empty((len(a), len(b)), np.float32)
    for i, row in enumerate(a):
        for j, column in enumerate(b):
            first = 0.0 if start is None else float(start[i, j])
            result[i, j] = math.fsum([first, *(row * column)])
    return result


def convert(x: np.ndarray, quant: int, target: str) -> np.ndarray:
    """A float32 accumulator on its way out: codes of ``target``.

    To nearest even. float16 and bfloat16 overflow to infinity, the rest saturates (inferred).
    """
    if quant == 0:
        return x.astype(np.float32).view(np.uint32)
    wide = x.astype(np.float64)
    if target in ("s8", "s16"):
        return to_integer(wide, LANES[target], "R", True)
    form = {"f16": F16, "bf16": BF16, "e4m3": E4M3, "e5m2": E5M2}[target]
    return form.encode(wide, "R", target in ("e4m3", "e5m2")).astype(LANES[target].code)
