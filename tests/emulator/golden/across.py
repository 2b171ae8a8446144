"""Across lanes: reductions, interleaving, packing, selection by index, squeezing, histograms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.case import Case
from tests.emulator.oracle import registers as oracle
from tests.emulator.oracle.types import LANES, Lane

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32")
SUMMED = (*INTEGERS, "f16", "f32")
COMPARED = ("u16", "s16", "u32", "s32", "f16", "f32")
WIDER = {"u8": "u16", "s8": "s16", "u16": "u32", "s16": "s32"}


def tame(kind: str) -> draw.Draw:
    """Sums of such floats neither overflow nor cancel to nothing; some rows hold anything."""
    lane = LANES[kind]

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        codes = draw.codes(kind)(rng, rows)
        if lane.kind == "f":
            tame = lane.codes(rng.uniform(0.5, 3.0, codes.shape))
            codes[: rows // 2] = tame[: rows // 2]
        return codes

    return drawer


def tied(kind: str) -> draw.Draw:
    """Lanes with equal extremes in several places; NaNs in some rows."""
    lane = LANES[kind]

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        few = lane.codes(rng.integers(1, 4, (rows, lane.count)))
        few[:, 0] = lane.codes(np.array([2]))[0]
        codes = draw.codes(kind)(rng, rows)
        codes[: rows // 2] = few[: rows // 2]
        return codes

    return drawer


def _sums() -> Iterator[Case]:
    for kind in SUMMED:
        lane = LANES[kind]
        wide = oracle.WIDENED.get(kind, kind)
        yield Case(
            "asc_reduce_sum",
            kind,
            "asc_reduce_sum(d0, r0, m0);",
            (kind, "bits"),
            (wide,),
            lambda a, m, lane=lane: oracle.reduce_sum(lane, a, m),
            drawers={0: tame(kind)},
        )
    for kind in ("u16", "s16", "u32", "s32", "f16", "f32"):
        lane = LANES[kind]
        yield Case(
            "asc_reduce_sum_datablock",
            kind,
            "asc_reduce_sum_datablock(d0, r0, m0);",
            (kind, "bits"),
            (kind,),
            lambda a, m, lane=lane: oracle.reduce_sum_blocks(lane, a, m),
            drawers={0: tame(kind)},
        )
    for kind in ("f16", "f32"):
        lane = LANES[kind]
        yield Case(
            "asc_pair_reduce_sum",
            kind,
            "asc_pair_reduce_sum(d0, r0, m0);",
            (kind, "bits"),
            (kind,),
            lambda a, m, lane=lane: oracle.pair_sum(lane, a, m),
            drawers={0: tame(kind)},
        )


def _extremes() -> Iterator[Case]:
    for word, largest in (("max", True), ("min", False)):
        for kind in COMPARED:
            lane = LANES[kind]
            for name, f in (
                (f"asc_reduce_{word}", oracle.reduce_best),
                (f"asc_reduce_{word}_datablock", oracle.reduce_best_blocks),
            ):
                yield Case(
                    name,
                    kind,
                    f"{name}(d0, r0, m0);",
                    (kind, "bits"),
                    (kind,),
                    lambda a, m, f=f, lane=lane, largest=largest: f(lane, a, m, largest),
                    drawers={0: tied(kind)},
                    rows=24,
                )


def _order() -> Iterator[Case]:
    for kind in ("u8", "s16", "u32", "f16", "bf16", "f32"):
        for name, f in (
            ("asc_intlv", oracle.interleave),
            ("asc_deintlv", oracle.deinterleave),
        ):
            yield Case(
                name,
                kind,
                f"{name}(d0, d1, r0, r1);",
                (kind, kind),
                (kind, kind),
                lambda a, b, f=f: f(a, b),
                copies=True,
            )
            yield Case(
                name,
                f"{kind} in place",
                f"{name}(r0, r1, r0, r1); d0 = r0; d1 = r1;",
                (kind, kind),
                (kind, kind),
                lambda a, b, f=f: f(a, b),
                copies=True,
            )
    for narrow, wide in WIDER.items():
        for name, high in (("asc_pack_to_low", False), ("asc_pack_to_high", True)):
            yield Case(
                name,
                f"{wide} to {narrow}",
                f"{name}(d0, r0);",
                (wide,),
                (narrow,),
                lambda a, lane=LANES[narrow], high=high: oracle.pack(a, lane, high),
            )
        for name, upper in (("asc_unpack_lower", False), ("asc_unpack_upper", True)):
            yield Case(
                name,
                f"{narrow} to {wide}",
                f"{name}(d0, r0);",
                (narrow,),
                (wide,),
                lambda a, n=LANES[narrow], w=LANES[wide], u=upper: oracle.unpack(a, n, w, u),
                drawers={0: draw.filled(LANES[narrow])},
            )
    for kind in ("u8", "u16", "f16", "bf16", "u32"):
        index = f"u{8 * LANES[kind].bytes}"
        yield Case(
            "asc_gather.register",
            kind,
            "asc_gather(d0, r0, r1);",
            (kind, index),
            (kind,),
            oracle.select_lanes,
            drawers={0: draw.filled(LANES[kind]), 1: _indices(LANES[index])},
            copies=True,
        )


def _indices(lane: Lane) -> draw.Draw:
    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        index = rng.integers(0, lane.count, (rows, lane.count))
        index[rows // 2 :] = rng.integers(0, 1 << 8 * lane.bytes, index[rows // 2 :].shape)
        return index.astype(lane.code)

    return drawer


def _counting() -> Iterator[Case]:
    for kind in (*INTEGERS, "f16", "bf16", "f32"):
        lane = LANES[kind]
        yield Case(
            "asc_squeeze",
            kind,
            "asc_squeeze(d0, r0, m0);",
            (kind, "bits"),
            (kind,),
            lambda a, m, lane=lane: oracle.squeeze(a, m, lane),
            copies=True,
        )
    for kind in ("s8", "s16", "s32"):
        lane = LANES[kind]
        yield Case(
            "asc_unsqueeze",
            kind,
            "asc_unsqueeze(d0, m0);",
            ("bits",),
            (kind,),
            lambda m, lane=lane: oracle.prefix_count(m, lane),
        )
    for word, cumulative in (("frequency", False), ("cumulative", True)):
        for half, upper in (("bin0", False), ("bin1", True)):
            name = f"asc_{word}_histogram_{half}"
            yield Case(
                name,
                "",
                f"d0 = r0; {name}(d0, r1, m0);",
                ("u16", "u8", "bits"),
                ("u16",),
                lambda old, a, m, u=upper, c=cumulative: oracle.histogram(old, a, m, u, c),
            )


CASES = [*_sums(), *_extremes(), *_order(), *_counting()]
