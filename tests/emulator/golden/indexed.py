"""Gather and scatter between the unified buffer and registers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.case import Case
from tests.emulator.golden.pointers import at
from tests.emulator.oracle import memory as oracle
from tests.emulator.oracle.types import LANES, Lane, active


def _index(lane: Lane, limit: int, distinct: bool) -> draw.Draw:
    """Element numbers below ``limit``; some rows repeat them unless ``distinct``."""

    def drawer(rng: np.random.Generator, rows: int) -> np.ndarray:
        if distinct:
            index = np.stack([rng.permutation(limit)[: lane.count] for _ in range(rows)])
        else:
            index = rng.integers(0, limit, (rows, lane.count))
        return index.astype(lane.code)

    return drawer


def _indexed() -> Iterator[Case]:
    for kind, result, index in (
        ("u8", "u16", "u16"),
        ("s8", "s16", "u16"),
        ("u16", "u16", "u16"),
        ("bf16", "bf16", "u16"),
        ("u32", "u32", "u32"),
        ("f32", "f32", "u32"),
    ):
        lane, wide = LANES[kind], LANES[result]

        def gathered(memory, at_index, mask, lane=lane, wide=wide):
            on = active(mask, wide)
            taken = oracle.gather(memory, lane, at_index, on)
            return wide.codes(lane.values(taken)) if lane is not wide else taken

        yield Case(
            "asc_gather",
            kind,
            f"asc_gather(d0, {at(kind, 0)}, r0, m0);",
            ("raw:1024", index, "bits"),
            (result,),
            gathered,
            drawers={1: _index(LANES[index], 1024 // lane.bytes, False)},
            copies=True,
        )
    for kind in ("u8", "u16", "f32"):
        lane = LANES[kind]

        def blocks(memory, offsets, *mask, lane=lane):
            parts = [
                np.stack([row[o : o + 32] for row, o in zip(memory, offsets[:, i].astype(int))])
                for i in range(8)
            ]
            codes = np.concatenate(parts, axis=1).view(lane.code)
            return np.where(active(mask[0], lane), codes, 0).astype(lane.code) if mask else codes

        offsets = {1: lambda rng, rows: rng.integers(0, 32, (rows, 64)).astype(np.uint32) * 32}
        for form, extra, takes in ((" masked", ", m0", ("bits",)), ("", "", ())):
            yield Case(
                "asc_gather_datablock",
                kind + form,
                f"asc_gather_datablock(d0, {at(kind, 0)}, r0{extra});",
                ("raw:1024", "u32", *takes),
                (kind,),
                blocks,
                drawers=offsets,
                copies=True,
            )
    for kind in ("u8", "u16", "bf16", "u32", "f32"):
        lane = LANES[kind]
        index = "u32" if lane.bytes == 4 else "u16"
        step = LANES[index].bytes // lane.bytes

        def scattered(codes, at_index, mask, old, lane=lane, step=step):
            # 8-bit data: one element of every 16-bit pair of lanes, an index each (inferred).
            on = active(mask, lane)[:, ::step]
            return oracle.scatter(old, lane, at_index, codes[:, ::step], on)

        for form, distinct in (("", True), (" colliding", False)):
            yield Case(
                "asc_scatter",
                kind + form,
                f"asc_scatter({at(kind, 0, 'q0')}, r0, r1, m0);",
                (kind, index, "bits"),
                ("raw:1024",),
                scattered,
                drawers={
                    0: draw.filled(lane),
                    1: _index(LANES[index], 1024 // lane.bytes, distinct),
                },
            )


CASES = list(_indexed())
