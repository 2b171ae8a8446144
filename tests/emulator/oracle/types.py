"""Element types of a 256-byte register, and what the bits of a lane mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.emulator.oracle.formats import BF16, E4M3, E5M2, F16, Format, decode_e8m0

REGISTER = 256
"""Bytes of a vector register, and bits of a predicate register."""


@dataclass(frozen=True)
class Lane:
    """One element type. ``kind``: f float, u unsigned, s signed, e bare exponent."""

    name: str
    bytes: int
    kind: str
    format: Format | None = None

    @property
    def count(self) -> int:
        """Lanes of a register."""
        return REGISTER // self.bytes

    @property
    def code(self) -> np.dtype:
        """The unsigned type of a lane's bits."""
        return np.dtype(f"u{self.bytes}")

    def values(self, codes: np.ndarray) -> np.ndarray:
        """Bits to float64, or to the integer type itself."""
        codes = np.asarray(codes, self.code)
        if self.kind == "u":
            return codes
        if self.kind == "s":
            return codes.view(f"i{self.bytes}")
        if self.kind == "e":
            return decode_e8m0(codes)
        if self.format is None:
            with np.errstate(invalid="ignore"):
                return codes.view(np.float32).astype(np.float64)
        return self.format.decode(codes)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Numbers to bits: floats to nearest even, integers modulo their width."""
        if self.kind in "us":
            values = np.asarray(values)
            if values.dtype == object:
                values = values & ((1 << 8 * self.bytes) - 1)
            return values.astype(self.code)
        if self.format is None:
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                return np.asarray(values).astype(np.float32).view(np.uint32)
        return self.format.encode(np.asarray(values)).astype(self.code)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which lanes hold a NaN; none of an integer type."""
        if self.kind in "us":
            return np.zeros(np.shape(codes), bool)
        return np.isnan(self.values(codes))


LANES = {
    lane.name: lane
    for lane in (
        Lane("f32", 4, "f"),
        Lane("f16", 2, "f", F16),
        Lane("bf16", 2, "f", BF16),
        Lane("e4m3", 1, "f", E4M3),
        Lane("e5m2", 1, "f", E5M2),
        Lane("e8m0", 1, "e"),
        *(Lane(f"u{8 * n}", n, "u") for n in (1, 2, 4, 8)),
        *(Lane(f"s{8 * n}", n, "s") for n in (1, 2, 4, 8)),
    )
}


def active(mask: np.ndarray, lane: Lane) -> np.ndarray:
    """Which lanes a predicate selects: the lowest bit of a lane's group decides (inferred)."""
    return mask[..., :: lane.bytes].astype(bool)


def zeroing(result: np.ndarray, mask: np.ndarray, lane: Lane) -> np.ndarray:
    """Inactive lanes become zero."""
    return np.where(active(mask, lane), result, lane.code.type(0))


def merging(result: np.ndarray, old: np.ndarray, mask: np.ndarray, lane: Lane) -> np.ndarray:
    """Inactive lanes keep the old destination."""
    return np.where(active(mask, lane), result, old)


def recast(codes: np.ndarray, lane: Lane) -> np.ndarray:
    """The same register seen through another lane type."""
    return np.ascontiguousarray(codes).view(lane.code)


def ulps(lane: Lane, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; infinite across NaN, sign (but zero) or infinity."""
    x, y = lane.values(got), lane.values(want)
    top = 1 << (8 * lane.bytes - 1)
    first, second = (
        np.where(c & top, -(c & (top - 1)).astype(np.int64), c.astype(np.int64))
        for c in (got, want)
    )
    distance = np.abs(first - second).astype(np.float64)
    special = ~(np.isfinite(x) & np.isfinite(y))
    same = (np.isnan(x) & np.isnan(y)) | (x == y)
    return np.where(special, np.where(same, 0.0, np.inf), distance)
