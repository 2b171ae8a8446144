"""Comparisons into predicates, selection, broadcasts, ramps, and 32-bit carry chains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.arith import ALL
from tests.emulator.golden.case import Case
from tests.emulator.oracle import lanes as oracle
from tests.emulator.oracle import registers
from tests.emulator.oracle.types import LANES, active, merging, zeroing


def _alike(kind: str) -> draw.Draw:
    """Few distinct lanes, so that equality happens."""
    lane = LANES[kind]
    pool = draw.specials(lane)

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        few = rng.choice(np.concatenate([pool, pool[:3]]), (rows, lane.count))
        return np.where(rng.random(few.shape) < 0.7, few, draw.codes(kind)(rng, rows))

    return drawer


def _compare() -> Iterator[Case]:
    for op in oracle.COMPARE:
        for kind in ALL:
            lane = LANES[kind]

            def expect(a, b, m, op=op, lane=lane):
                truth = oracle.compare(op, lane, a, b) & active(m, lane)
                return registers.spread(truth, lane.bytes)

            def by_scalar(a, m, s, op=op, lane=lane):
                truth = oracle.compare(op, lane, a, np.broadcast_to(s, a.shape))
                return registers.spread(truth & active(m, lane), lane.bytes)

            yield Case(
                f"asc_{op}",
                kind,
                f"asc_{op}(b0, r0, r1, m0);",
                (kind, kind, "bits"),
                ("bits",),
                expect,
                drawers={0: _alike(kind), 1: _alike(kind)},
            )
            yield Case(
                f"asc_{op}_scalar",
                kind,
                f"asc_{op}_scalar(b0, r0, s0, m0);",
                (kind, "bits"),
                ("bits",),
                by_scalar,
                scalars=(kind,),
                drawers={0: _alike(kind)},
            )


def _choice() -> Iterator[Case]:
    for kind in ALL:
        lane = LANES[kind]
        yield Case(
            "asc_select",
            kind,
            "asc_select(d0, r0, r1, m0);",
            (kind, kind, "bits"),
            (kind,),
            lambda a, b, m, lane=lane: merging(a, b, m, lane),
            copies=True,
        )
        yield Case(
            "asc_duplicate_scalar",
            kind,
            "asc_duplicate_scalar(d0, s0, m0);",
            ("bits",),
            (kind,),
            lambda m, s, lane=lane: zeroing(np.full((len(m), lane.count), s), m, lane),
            scalars=(kind,),
            copies=True,
        )
        for name, at in (("asc_duplicate", 0), ("asc_duplicate_highest", -1)):
            yield Case(
                name,
                kind,
                f"{name}(d0, r0, m0);",
                (kind, "bits"),
                (kind,),
                lambda a, m, lane=lane, at=at: zeroing(
                    np.repeat(a[:, [at]], lane.count, axis=1), m, lane
                ),
                drawers={0: draw.filled(lane)},
                copies=True,
            )


def _ramps() -> Iterator[Case]:
    for kind in ("s8", "s16", "s32", "f16", "f32"):
        lane = LANES[kind]
        for name, down in (("asc_arange", False), ("asc_arange_descend", True)):

            def expect(unused, s, lane=lane, down=down):
                first = lane.values(np.array([s]))
                steps = np.arange(lane.count).astype(first.dtype)
                with np.errstate(all="ignore"):
                    ramp = first - steps if down else first + steps
                return np.tile(lane.codes(ramp), (len(unused), 1))

            yield Case(
                name, kind, f"{name}(d0, s0);", (kind,), (kind,), expect, scalars=(kind,), rows=2
            )


def _carry() -> Iterator[Case]:
    u32 = LANES["u32"]

    def chain(step):
        def expect(a, b, *rest):
            mask = rest[-1]
            # Without a carry in, a sum starts from 0 and a difference from "no borrow".
            start = active(rest[0], u32) if len(rest) == 2 else step is oracle.sub_carry
            result, carry = step(a, b, np.broadcast_to(start, a.shape))
            carry &= active(mask, u32)
            return zeroing(result, mask, u32), registers.spread(carry, 4)

        return expect

    for name, step in (("asc_add", oracle.add_carry), ("asc_sub", oracle.sub_carry)):
        yield Case(
            f"{name}.carry",
            "u32",
            f"{name}(b0, d0, r0, r1, m0);",
            ("u32", "u32", "bits"),
            ("u32", "bits"),
            chain(step),
            drawers={0: draw.filled(LANES["u32"]), 1: draw.filled(LANES["u32"])},
        )
        yield Case(
            f"{name}c",
            "u32",
            f"{name}c(b0, d0, r0, r1, m0, m1);",
            ("u32", "u32", "bits", "bits"),
            ("u32", "bits"),
            chain(step),
        )
    for kind in ("u32", "s32"):
        lane = LANES[kind]

        def product(a, b, m, lane=lane):
            return tuple(zeroing(half, m, lane) for half in oracle.multiply_wide(lane, a, b))

        yield Case(
            "asc_mull",
            kind,
            "asc_mull(d0, d1, r0, r1, m0);",
            (kind, kind, "bits"),
            (kind, kind),
            product,
        )


CASES = [*_compare(), *_choice(), *_ramps(), *_carry()]
