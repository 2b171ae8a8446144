"""Inputs: lanes that mix special values with random ones, and predicates of every habit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.emulator.oracle.types import LANES, Lane

Draw = Callable[[np.random.Generator, int], np.ndarray]


def specials(lane: Lane) -> np.ndarray:
    """Codes at the edges of a type."""
    width = 8 * lane.bytes
    if lane.kind in "us":
        top = 1 << (width - 1)
        edges = [0, 1, 2, 3, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1]
        return np.array(edges, np.uint64).astype(lane.code)
    if lane.format is None:
        f = np.float32
        tiny, small, big = f(1e-45), np.finfo(f).tiny, np.finfo(f).max
        values = [0, 1, 2, 0.5, 1.5, tiny, small, np.nextafter(small, f(0)), big, np.inf, np.nan]
        one = np.array(values, np.float32).view(np.uint32)
        return np.concatenate([one, one | np.uint32(1 << 31)])
    if lane.kind == "e":
        return np.array([0, 1, 126, 127, 128, 254, 255], np.uint8)
    form = lane.format
    one = [0, 1, (1 << form.man) - 1, 1 << form.man, form.largest]
    one += [int(form.encode(np.array(v))) for v in (0.5, 1.0, 1.5, 2.0)]
    if form.top == "ieee":
        one.append(form.infinity)
    one.append(form.nan)
    both = np.array(one + [c | form.sign for c in one], np.uint32)
    return both.astype(lane.code)


def codes(name: str) -> Draw:
    """Lanes of a type: random bits, moderate numbers, special values; two ordinary ones first."""
    lane = LANES[name]

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        shape = (rows, lane.count)
        anything = rng.integers(0, 256, (rows, 256), dtype=np.uint8).view(lane.code)
        if lane.kind in "us":
            usual = rng.integers(1, 10, shape)
            usual = lane.codes(usual if lane.kind == "u" else usual * rng.choice([-1, 1], shape))
        else:
            usual = _floats(lane, rng, shape)
        choice = rng.random(shape)
        result = np.where(choice < 0.45, anything, usual)
        result = np.where(choice > 0.85, rng.choice(specials(lane), shape), result)
        result[:, :2] = usual[:, :2]
        return result.astype(lane.code)

    return draw


def _floats(lane: Lane, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Numbers of magnitude around one, none of them zero."""
    values = rng.uniform(0.25, 4.0, shape) * rng.choice([-1.0, 1.0], shape)
    if lane.kind == "e":
        return rng.integers(120, 135, shape).astype(np.uint8)
    return lane.codes(values)


def within(name: str, low: float, high: float) -> Draw:
    """Lanes drawn evenly from [low, high]."""
    lane = LANES[name]

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        shape = (rows, lane.count)
        if lane.kind in "us":
            return lane.codes(rng.integers(int(low), int(high) + 1, shape))
        return lane.codes(rng.uniform(low, high, shape))

    return draw


def bits(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Predicates: all, the patterns of whole lanes, tails, random lanes, random bits, none."""
    result = np.zeros((rows, 256), bool)
    for row in range(rows):
        width = int(rng.choice([1, 2, 4]))
        lanes = 256 // width
        habit = row % 6
        if habit == 0:
            result[row] = True
        elif habit == 1:
            result[row] = rng.random(256) < 0.5
        elif habit == 2:
            result[row, ::width] = rng.random(lanes) < 0.7
        elif habit == 3:
            result[row, : width * int(rng.integers(0, lanes + 1)) : width] = True
        elif habit == 4:
            result[row] = rng.random(256) < 0.95
            result[row, 0] = True
    return result


def memory(size: int) -> Draw:
    """Bytes, none of them zero, so that a lost lane shows."""

    def draw(rng: np.random.Generator, rows: int) -> np.ndarray:
        return rng.integers(1, 256, (rows, size), dtype=np.uint8)

    return draw


def filled(lane: Lane) -> Draw:
    """Lanes of random bytes, none of them zero."""
    return lambda rng, rows: memory(256)(rng, rows).view(lane.code)


def default(kind: str) -> Draw:
    """The drawer of a field."""
    if kind == "bits":
        return bits
    return memory(int(kind[4:])) if kind.startswith("raw:") else codes(kind)
