"""Warps of 32 threads: shuffles, votes and reductions over the lanes that take part."""

from __future__ import annotations

import numpy as np

from tests.emulator.oracle.lanes import BINARY, binary
from tests.emulator.oracle.types import LANES

WARP = 32


def warps(values: np.ndarray) -> np.ndarray:
    """(threads,) to (warps, 32); the last warp may be short, so threads are a multiple of 32."""
    return values.reshape(-1, WARP)


def shuffle_xor(values: np.ndarray, mask: int, on: np.ndarray) -> np.ndarray:
    """The value of lane i ^ mask, one's own where that lane does not take part (inferred)."""
    lanes = np.arange(WARP) ^ mask
    v, there = warps(values), warps(on)[:, lanes]
    return np.where(there, v[:, lanes], v).reshape(-1)


def votes(predicate: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Bit i of the warp's word: lane i takes part and its predicate holds."""
    bits = warps(predicate & on).astype(np.uint64) << np.arange(WARP, dtype=np.uint64)
    return np.repeat(bits.sum(axis=1).astype(np.uint32), WARP)


def reduce(op: str, kind: str, codes: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Over the lanes that take part; a float sum folds halves onto each other (inferred)."""
    lane = LANES[kind]
    result = np.zeros_like(codes)
    for row, values, active in zip(warps(result), warps(codes), warps(on)):
        if op == "add" and lane.kind == "f":
            folded = np.where(active, values, 0).astype(lane.code)
            while len(folded) > 1:
                half = len(folded) // 2
                folded = binary("add", lane, folded[:half], folded[half:])
            row[:] = folded[0]
            continue
        chosen = lane.values(values[active])
        if len(chosen) == 0:
            continue
        total = chosen[0]
        for value in chosen[1:]:
            total = BINARY[op](np.asarray(total), np.asarray(value))[()]
        row[:] = lane.codes(np.array([total]))[0]
    return result
