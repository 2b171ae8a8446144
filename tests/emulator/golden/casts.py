"""::vcvt: every pair of types under every rounding and saturation mode, parts and write modes.

All 65,536 (or 256) codes of a 16-bit (8-bit) source are converted; float32 sources hold every value
of the target, the midpoints between neighbours, and the floats next to both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.case import Case
from tests.emulator.oracle.casts import FP4, PAIRS, Pair, cast
from tests.emulator.oracle.formats import ROUNDINGS
from tests.emulator.oracle.types import LANES

MASKED_ROWS = 12
PART_NAMES = {2: ("PART_EVEN", "PART_ODD"), 4: ("PART_P0", "PART_P1", "PART_P2", "PART_P3")}


def variants(pair: Pair) -> list[tuple[str, bool, int, bool]]:
    """(rounding, saturation, part, merge): all of the first two, and all of the last two."""
    rounding = ROUNDINGS if pair.rounds else ("R",)
    saturation = (True, False) if pair.saturates else (False,)
    first = list(product(saturation, rounding))
    last = list(product((False, True), range(pair.parts)))
    count = max(len(first), len(last))
    return [
        (first[i % len(first)][1], first[i % len(first)][0], *last[i % len(last)][::-1])
        for i in range(count)
    ]


def controls(pair: Pair, mode: str, saturate: bool, part: int, merge: bool) -> str:
    """The trailing arguments, in the order TileLang prints them."""
    words = [f"ROUND_{mode}"] if pair.rounds else []
    if pair.saturates:
        words.append("RS_ENABLE" if saturate else "RS_DISABLE")
    if (pair.source, pair.target) == ("bf16", "f16"):
        words.reverse()
    if pair.parts > 1:
        words.append(PART_NAMES[pair.parts][part])
    return ", ".join([*words, "MODE_MERGING" if merge else "MODE_ZEROING"])


@cache
def sources(source: str, target: str) -> np.ndarray:
    """Codes that must be converted, whatever the seed."""
    if source in FP4:
        return np.arange(256, dtype=np.uint8)
    lane = LANES[source]
    if lane.bytes <= 2:
        return np.arange(1 << 8 * lane.bytes, dtype=np.uint32).astype(lane.code)
    if lane.kind in "us":
        edges = np.array([1 << k for k in range(8 * lane.bytes)], object)
        around = [e * sign + d for e in edges for sign in (1, -1) for d in range(-3, 4)]
        around += [3 * e + d for e in edges for d in (-1, 0, 1)]
        return lane.codes(np.array(around, object))
    return _floats(target)


def _floats(target: str) -> np.ndarray:
    """Float32 codes around everything that rounding to ``target`` may decide."""
    lane = LANES[target]
    if lane.format is not None:
        values = lane.format.values
        beyond = np.append(values, values[-1] + (values[-1] - values[-2]))
        middle = (beyond[1:] + beyond[:-1]) / 2
        exact = np.concatenate([beyond, middle])
    else:
        width = 8 * lane.bytes
        small = np.arange(600) / 4
        powers = 2.0 ** np.arange(-3, width + 3)
        exact = np.concatenate([small, powers, powers * 1.5, powers - 1, powers + 1, powers - 0.5])
    with np.errstate(over="ignore"):
        near = exact.astype(np.float32)
    around = [np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(np.inf))]
    positive = np.unique(np.concatenate([*around, [np.inf, np.nan]]).astype(np.float32))
    codes = positive.view(np.uint32)
    return np.concatenate([codes, codes | np.uint32(1 << 31)])


def _placed(pair: Pair, part: int) -> np.ndarray:
    """Rows in which every source code sits where the conversion reads it."""
    codes = sources(pair.source, pair.target)
    if pair.source in FP4:
        rows = np.zeros((len(codes) // 64, 64, 4), np.uint8)
        rows[:, :, part] = codes.reshape(-1, 64)
        return rows.reshape(len(rows), 256)
    lane = LANES[pair.source]
    bytes_of_target = 2 if pair.target in FP4 else LANES[pair.target].bytes
    ratio = max(1, bytes_of_target // lane.bytes)
    slots = lane.count // ratio
    count = -(-len(codes) // slots)
    rows = np.zeros((count, slots, ratio), lane.code)
    rows[:, :, part if ratio > 1 else 0] = np.resize(codes, (count, slots))
    if ratio > 1:  # what the conversion must not read
        rows[:, :, (part + 1) % ratio] = ~rows[:, :, part]
    return rows.reshape(count, lane.count)


def make(pair: Pair, mode: str, saturate: bool, part: int, merge: bool) -> Case:
    """One variant of one pair."""
    placed = _placed(pair, part)
    form = f"{pair.source} to {pair.target}: {controls(pair, mode, saturate, part, merge)}"

    def source(rng: np.random.Generator, rows: int) -> np.ndarray:
        masked = MASKED_ROWS
        if pair.source in FP4:
            return np.concatenate([placed, draw.memory(256)(rng, masked)])
        return np.concatenate([placed, draw.codes(pair.source)(rng, masked)])

    def mask(rng: np.random.Generator, rows: int) -> np.ndarray:
        full = np.ones((len(placed), 256), bool)
        return np.concatenate([full, draw.bits(rng, MASKED_ROWS)])

    def old(rng: np.random.Generator, rows: int) -> np.ndarray:
        codes = draw.memory(256)(rng, rows)
        return codes if pair.target in FP4 else codes.view(LANES[pair.target].code)

    def expect(held: np.ndarray, codes: np.ndarray, m: np.ndarray) -> np.ndarray:
        return cast(pair, codes, held, m, mode=mode, saturate=saturate, part=part, merge=merge)

    return Case(
        "vcvt",
        form,
        f"d0 = r0; ::vcvt(d0, r1, m0, {controls(pair, mode, saturate, part, merge)});",
        (pair.target, pair.source, "bits"),
        (pair.target,),
        expect,
        drawers={0: old, 1: source, 2: mask},
        rows=len(placed) + MASKED_ROWS,
    )


def _cases(from_float32: bool) -> Iterator[Case]:
    for pair in PAIRS:
        if (pair.source == "f32") == from_float32:
            for variant in variants(pair):
                yield make(pair, *variant)


FROM_F32 = list(_cases(True))
FROM_OTHERS = list(_cases(False))
CASES = [*FROM_F32, *FROM_OTHERS]
