"""Conversions: which pairs exist, what one element becomes, and which part of a wide lane it is.

The pairs and their controls are those TileLang's ``T.simd.vcvt`` accepts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.emulator.oracle.formats import E1M2, E2M1, Format
from tests.emulator.oracle.types import LANES, Lane, active

FP4 = {"e2m1x2": E2M1, "e1m2x2": E1M2}


@dataclass(frozen=True)
class Pair:
    """A conversion; whether it takes a rounding mode, a saturation mode and a part."""

    source: str
    target: str
    rounds: bool = True
    saturates: bool = True

    @property
    def parts(self) -> int:
        """Narrow elements of a wide lane. Packed 4-bit pairs live in words of two bfloat16."""
        if self.source in FP4 or self.target in FP4:
            return 4
        a, b = LANES[self.source].bytes, LANES[self.target].bytes
        return max(a, b) // min(a, b)


def _pairs() -> tuple[Pair, ...]:
    both = "f32-s64 f32-s32 f32-s16 f16-s16 f16-s8 f16-u8 bf16-s32 f32-f16 f32-bf16 f32-e4m3"
    both += " f32-e5m2 f16-e4m3 f16-e5m2 bf16-e4m3 bf16-e5m2 bf16-f16"
    rounding = "f16-s32 f16-bf16 bf16-e2m1x2 bf16-e1m2x2 s16-f16 s32-f32 s64-f32"
    saturation = "s32-s16 s32-u16 s32-u8 u32-s16 u32-u16 u32-u8 s16-u8 u16-u8 s64-s32"
    neither = "f16-f32 bf16-f32 e4m3-f32 e5m2-f32 e2m1x2-bf16 e1m2x2-bf16 s8-f16 u8-f16 s16-f32"
    neither += " s32-s64 s16-s32 s16-u32 u16-u32 s8-s16 s8-s32 u8-u16 u8-u32"
    return tuple(
        Pair(*name.split("-"), rounds, saturates)
        for names, rounds, saturates in (
            (both, True, True),
            (rounding, True, False),
            (saturation, False, True),
            (neither, False, False),
        )
        for name in names.split()
    )


PAIRS = _pairs()


def to_integer(x: np.ndarray, lane: Lane, mode: str, saturate: bool) -> np.ndarray:
    """Float64 to integer codes.

    NaN becomes 0 (guessed). Out of range: the nearest bound, or the low bits of the rounded integer
    ("wrap" in TileLang's docstring; an infinity then gives 0, guessed).
    """
    finite = np.where(np.isfinite(x), x, 0.0)
    down = np.floor(finite)
    rest = finite - down
    odd = np.fmod(down, 2.0) != 0
    up = {
        "R": (rest > 0.5) | ((rest == 0.5) & odd),
        "A": (rest > 0.5) | ((rest == 0.5) & (finite > 0)),
        "H": (rest > 0.5) | ((rest == 0.5) & (finite > 0)),
        "F": np.zeros_like(odd),
        "C": rest > 0,
        "Z": (finite < 0) & (rest > 0),
        "O": (rest > 0) & ~odd,
    }[mode]
    whole = down + up
    low, high = bounds(lane)
    near = np.abs(whole) < 2.0**63
    result = np.where(near, whole, 0.0).astype(np.int64)
    if saturate:
        result = np.clip(result, low, high)
        result = np.where(near & np.isfinite(x), result, np.where(x > 0, high, low))
        result = np.where(np.isnan(x), 0, result)
    else:
        far = [int(v) & ((1 << 64) - 1) for v in whole[~near]]
        result[~near] = np.array(far, np.uint64).view(np.int64)
    return result.astype(lane.code)


def bounds(lane: Lane) -> tuple[int, int]:
    """Smallest and largest integer of a lane type."""
    half = 1 << 8 * lane.bytes - 1
    return (-half, half - 1) if lane.kind == "s" else (0, 2 * half - 1)


def integer_to_f32(x: np.ndarray, mode: str) -> np.ndarray:
    """Integers to float32 codes, by comparing with the two neighbouring floats as integers."""
    near = x.astype(np.float32)
    exact = np.array([int(v) for v in near.ravel()], object).reshape(near.shape)
    wanted = x.astype(object)
    lower = np.where(exact > wanted, np.nextafter(near, np.float32(-np.inf)), near)
    upper = np.where(exact < wanted, np.nextafter(near, np.float32(np.inf)), near)
    odd = (np.ascontiguousarray(lower).view(np.uint32) & 1) == 1
    choice = {
        "R": near,
        "F": lower,
        "C": upper,
        "Z": np.where(x < 0, upper, lower),
        "O": np.where(odd, lower, upper),
    }.get(mode)
    if choice is None:  # nearest, ties away from zero
        gap_down = wanted - np.array([int(v) for v in lower.ravel()], object).reshape(x.shape)
        gap_up = np.array([int(v) for v in upper.ravel()], object).reshape(x.shape) - wanted
        away = np.where(x < 0, gap_down <= gap_up, gap_up > gap_down)
        choice = np.where(away, lower, upper)
    return np.ascontiguousarray(choice.astype(np.float32)).view(np.uint32)


def convert(pair: Pair, codes: np.ndarray, mode: str, saturate: bool) -> np.ndarray:
    """One element each: source codes to target codes."""
    source, target = LANES[pair.source], LANES[pair.target]
    values = source.values(codes)
    if target.kind in "us" and source.kind in "us":
        if saturate:
            values = np.clip(values.astype(object), *bounds(target))
        return (values.astype(object) & ((1 << 8 * target.bytes) - 1)).astype(target.code)
    if target.kind in "us":
        return to_integer(values, target, mode, saturate)
    if target.name == "f32" and source.kind in "us":
        return integer_to_f32(values, mode)
    if target.name == "f32":
        return target.codes(values)
    assert target.format is not None
    return target.format.encode(values.astype(np.float64), mode, saturate).astype(target.code)


def cast(
    pair: Pair,
    source: np.ndarray,
    old: np.ndarray,
    mask: np.ndarray,
    *,
    mode: str = "R",
    saturate: bool = False,
    part: int = 0,
    merge: bool = False,
) -> np.ndarray:
    """A whole register: source lanes and old target lanes to target lanes.

    Narrowing writes part ``part`` of every wide lane and clears the other parts, or keeps them when
    merging (inferred); widening reads that part. The wide lane's lowest predicate bit gates it
    (inferred).
    """
    if pair.source in FP4 or pair.target in FP4:
        return _cast4(pair, source, old, mask, mode=mode, part=part, merge=merge)
    a, b = LANES[pair.source], LANES[pair.target]
    wide = a if a.bytes > b.bytes else b
    rows = len(source)
    elements = source.reshape(rows, wide.count, -1)
    taken = elements[:, :, part if a.bytes < b.bytes else 0]
    made = convert(pair, taken, mode, saturate)
    on = active(mask, wide)
    result = (old.copy() if merge else np.zeros_like(old)).reshape(rows, wide.count, -1)
    at = part if b.bytes < a.bytes else 0
    result[:, :, at] = np.where(on, made, result[:, :, at])
    return result.reshape(rows, -1)


def _cast4(
    pair: Pair,
    source: np.ndarray,
    old: np.ndarray,
    mask: np.ndarray,
    *,
    mode: str,
    part: int,
    merge: bool,
) -> np.ndarray:
    """Two bfloat16 lanes share a 32-bit word with byte ``part``, even lane in the low nibble.

    Each bfloat16 lane's own predicate bit gates its nibble (inferred).
    """
    bf16 = LANES["bf16"]
    on = active(mask, bf16)
    if pair.target in FP4:
        four: Format = FP4[pair.target]
        code = four.encode(bf16.values(source), mode).astype(np.uint8)
        kept = old.reshape(len(old), -1, 4)[:, :, part] if merge else np.zeros_like(code[:, ::2])
        pair_code = np.where(on[:, ::2], code[:, ::2], kept & 15)
        pair_code |= np.where(on[:, 1::2], code[:, 1::2], kept >> 4) << 4
        result = (old.copy() if merge else np.zeros_like(old)).reshape(len(old), -1, 4)
        result[:, :, part] = pair_code
        return result.reshape(len(old), -1)
    four = FP4[pair.source]
    byte = source.reshape(len(source), -1, 4)[:, :, part]
    code = np.stack([byte & 15, byte >> 4], axis=2).reshape(len(source), -1)
    made = bf16.codes(four.decode(code))
    return np.where(on, made, old if merge else 0).astype(np.uint16)
