"""Across lanes: reductions, permutations, predicates, histograms. Codes in, codes out."""

from __future__ import annotations

import numpy as np

from tests.emulator.oracle.lanes import binary
from tests.emulator.oracle.types import LANES, Lane, active, zeroing

BLOCK = 32
"""Bytes of a data block: eight in a register."""
WIDENED = {"s8": "s16", "u8": "u16", "s16": "s32", "u16": "u32"}
"""Lane type of a full sum; others keep theirs (``widen_vec`` of TileLang's templates)."""


def _tree(lane: Lane, codes: np.ndarray) -> np.ndarray:
    """Sum over the last axis: neighbours first, each level rounded to the lane type (inferred)."""
    while codes.shape[-1] > 1:
        codes = binary("add", lane, codes[..., 0::2], codes[..., 1::2])
    return codes[..., 0]


def reduce_sum(lane: Lane, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The sum of active lanes in lane 0 of the widened type; inactive lanes count as zero."""
    wide = LANES[WIDENED.get(lane.name, lane.name)]
    terms = wide.codes(lane.values(zeroing(a, mask, lane)))
    result = np.zeros((len(a), wide.count), wide.code)
    result[:, 0] = _tree(wide, terms)
    return result


def reduce_sum_blocks(lane: Lane, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """One sum a 32-byte block, in the lowest eight lanes."""
    blocks = zeroing(a, mask, lane).reshape(len(a), 8, -1)
    result = np.zeros_like(a)
    result[:, :8] = _tree(lane, blocks)
    return result


def _best(
    lane: Lane, a: np.ndarray, on: np.ndarray, largest: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Code and position over the last axis: the first NaN, else the first best active lane.

    Over no lane: the value that loses against all, at 0 (guessed). +0 and -0 are equal.
    """
    values = lane.values(a)
    if lane.kind == "f":
        losing = -np.inf if largest else np.inf
        key = np.where(np.isnan(values), -losing, values)
        key = np.where(on, key, losing)
        nan = np.isnan(values) & on
        at = np.where(nan.any(-1), nan.argmax(-1), 0)
    else:
        info = np.iinfo(values.dtype)
        losing = info.min if largest else info.max
        key, nan = np.where(on, values, values.dtype.type(losing)), np.zeros_like(on)
        at = np.zeros(a.shape[:-1], np.int64)
    best = key.max(-1, keepdims=True) if largest else key.min(-1, keepdims=True)
    first = ((key == best) & on).argmax(-1)
    at = np.where(nan.any(-1), at, first)
    code = np.take_along_axis(a, at[..., None], -1)[..., 0]
    none = ~on.any(-1)
    empty = lane.codes(np.array([losing], values.dtype))[0]
    return np.where(none, empty, code), np.where(none, 0, at)


def reduce_best(lane: Lane, a: np.ndarray, mask: np.ndarray, largest: bool) -> np.ndarray:
    """The value in lane 0, the number of its lane as an integer in lane 1."""
    result = np.zeros_like(a)
    result[:, 0], result[:, 1] = _best(lane, a, active(mask, lane), largest)
    return result


def reduce_best_blocks(lane: Lane, a: np.ndarray, mask: np.ndarray, largest: bool) -> np.ndarray:
    """One value a 32-byte block, in the lowest eight lanes."""
    shape = (len(a), 8, -1)
    result = np.zeros_like(a)
    result[:, :8] = _best(lane, a.reshape(shape), active(mask, lane).reshape(shape), largest)[0]
    return result


def pair_sum(lane: Lane, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Sums of adjacent lanes, packed into the low half; inactive lanes count as zero."""
    terms = zeroing(a, mask, lane)
    result = np.zeros_like(a)
    result[:, : lane.count // 2] = binary("add", lane, terms[:, 0::2], terms[:, 1::2])
    return result


def interleave(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a0 b0 a1 b1 ...: the first register of the result, then the second."""
    woven = np.stack([a, b], axis=2).reshape(len(a), -1)
    return woven[:, : a.shape[1]], woven[:, a.shape[1] :]


def deinterleave(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Even and odd elements of a followed by b."""
    line = np.concatenate([a, b], axis=1)
    return line[:, 0::2], line[:, 1::2]


def pack(wide: np.ndarray, narrow: Lane, high: bool) -> np.ndarray:
    """The low half of every lane, dense in one half of the register; the other half is zero."""
    low = wide.astype(narrow.code)
    zero = np.zeros_like(low)
    return np.concatenate([zero, low] if high else [low, zero], axis=1)


def unpack(narrow: np.ndarray, lane: Lane, wide: Lane, upper: bool) -> np.ndarray:
    """One half of the lanes, zero- or sign-extended."""
    half = lane.count // 2
    return wide.codes(lane.values(narrow[:, half:] if upper else narrow[:, :half]))


def select_lanes(a: np.ndarray, index: np.ndarray) -> np.ndarray:
    """a[index], the index taken modulo the number of lanes (inferred)."""
    return np.take_along_axis(a, index.astype(np.int64) % a.shape[1], axis=1)


def squeeze(a: np.ndarray, mask: np.ndarray, lane: Lane) -> np.ndarray:
    """Active lanes move to the bottom in order; the rest is zero (inferred)."""
    result = np.zeros_like(a)
    for row, codes, on in zip(result, a, active(mask, lane)):
        kept = codes[on]
        row[: len(kept)] = kept
    return result


def prefix_count(mask: np.ndarray, lane: Lane) -> np.ndarray:
    """How many active lanes precede each lane, modulo the lane's width."""
    on = active(mask, lane).astype(np.int64)
    return lane.codes(np.cumsum(on, axis=1) - on)


def histogram(
    old: np.ndarray, a: np.ndarray, mask: np.ndarray, upper: bool, cumulative: bool
) -> np.ndarray:
    """Adds to 128 counters the active bytes equal to (or, cumulative, at most) j, or 128 + j."""
    counts = np.stack([np.bincount(row[on], minlength=256) for row, on in zip(a, mask)])
    if cumulative:
        counts = np.cumsum(counts, axis=1)
    return (old + counts[:, 128:] if upper else old + counts[:, :128]).astype(np.uint16)


# ---- predicates: 256 bits a row -----------------------------------------------------------------


def pattern(name: str, lanes: int) -> np.ndarray:
    """Which lanes PAT_* selects."""
    i = np.arange(lanes)
    if name.startswith("VL"):
        return i < int(name[2:])
    return {
        "ALL": i >= 0,
        "ALLF": i < 0,
        "M3": i % 3 == 0,
        "M4": i % 4 == 0,
        "H": i < lanes // 2,
        "Q": i < lanes // 4,
    }[name]


def spread(lanes: np.ndarray, width: int) -> np.ndarray:
    """Lane truth to predicate bits: the lowest bit of a lane's group is set, the others are not."""
    bits = np.zeros((*lanes.shape[:-1], lanes.shape[-1] * width), bool)
    bits[..., ::width] = lanes
    return bits


def pack_bits(a: np.ndarray, high: bool) -> np.ndarray:
    """Every second bit, dense in one half; the other half is clear."""
    zero = np.zeros_like(a[:, ::2])
    return np.concatenate([zero, a[:, ::2]] if high else [a[:, ::2], zero], axis=1)


def unpack_bits(a: np.ndarray, upper: bool) -> np.ndarray:
    """One half spread over the even bits; odd bits are clear."""
    half = a.shape[1] // 2
    return spread(a[:, half:] if upper else a[:, :half], 2)


def interleave_bits(a: np.ndarray, b: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups of ``width`` bits, one a lane, interleaved."""
    shape = (len(a), -1, width)
    both = np.stack([a.reshape(shape), b.reshape(shape)], axis=2).reshape(len(a), -1)
    return both[:, : a.shape[1]], both[:, a.shape[1] :]


def deinterleave_bits(a: np.ndarray, b: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Even and odd groups of a followed by b."""
    groups = np.concatenate([a, b], axis=1).reshape(len(a), -1, width)
    return groups[:, 0::2].reshape(len(a), -1), groups[:, 1::2].reshape(len(a), -1)
