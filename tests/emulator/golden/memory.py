"""Between the unified buffer and registers: distributions, post-update, predicates, barriers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.case import Case
from tests.emulator.golden.pointers import ALL, at, moved
from tests.emulator.harness import CTYPE
from tests.emulator.oracle import memory as oracle
from tests.emulator.oracle.types import LANES, active

# Distributions and the element types that TileLang prints them with.
LOADS = {
    "": ("u8", "s16", "f16", "bf16", "f32", "e4m3"),
    "brc_elem": ("u8", "bf16", "f32"),
    "upsample": ("u8", "u16"),
    "downsample": ("u8", "u16"),
    "unpack": ("u8", "u16", "u32"),
    "unpack4": ("u8",),
    "brc_datablock": ("u8", "f16", "f32"),
    "brc_elem2datablock": ("u16", "f32"),
}


def _loads() -> Iterator[Case]:
    for dist, kinds in LOADS.items():
        name = "_".join(filter(None, ("asc_loadalign", dist)))
        for kind in kinds:
            lane = LANES[kind]

            def expect(memory, dist=dist, lane=lane):
                return oracle.load(dist, memory, lane, 64)

            def twice(memory, dist=dist, lane=lane, steps=(64 // lane.bytes, -32 // lane.bytes)):
                first = oracle.load(dist, memory, lane, 64)
                second = oracle.load(dist, memory, lane, 64 + steps[0] * lane.bytes)
                where = 64 // lane.bytes + sum(steps)
                return first, second, np.full((len(memory), 64), where, np.uint32)

            def case(form, body, kind=kind, name=name, expect=expect):
                return Case(name, f"{kind}{form}", body, ("raw:768",), (kind,), expect, copies=True)

            yield case("", f"{name}(d0, {at(kind, 32)}, {32 // lane.bytes});")
            yield case(" without offset", f"{name}(d0, {at(kind, 64)});")
            yield Case(
                f"{name}_postupdate",
                kind,
                f"__ubuf__ {CTYPE[kind]} *p = {at(kind, 64)}; "
                f"{name}_postupdate(d0, p, {64 // lane.bytes}); "
                f"{name}_postupdate(d1, p, {-32 // lane.bytes});" + moved("p", kind, "d2"),
                ("raw:768",),
                (kind, kind, "s32"),
                twice,
                copies=True,
            )
    for kind in ("u8", "u16", "f32"):
        lane = LANES[kind]
        width = 8 * lane.bytes

        def split(memory, lane=lane):
            line = oracle.elements(memory, lane, 64, 2 * lane.count)
            return line[:, ::2], line[:, 1::2]

        for form, call in (
            ("", f"asc_loadalign_deintlv(d0, d1, {at(kind, 64)});"),
            (" at", f"asc_loadalign_deintlv(d0, d1, {at(kind, 32)}, {32 // lane.bytes});"),
        ):
            yield Case("asc_loadalign_deintlv", kind + form, call, ("raw:768",), (kind,) * 2, split)
        yield Case(
            f"asc_update_addr_reg_b{width}",
            kind,
            f"asc_loadalign(d0, {at(kind, 32)}, asc_update_addr_reg_b{width}({32 // lane.bytes}));",
            ("raw:768",),
            (kind,),
            lambda memory, lane=lane: oracle.load("", memory, lane, 64),
            copies=True,
        )


def _stores() -> Iterator[Case]:
    for kind in ("u8", "f16", "bf16", "f32", "e4m3"):
        lane = LANES[kind]
        step = 64 // lane.bytes

        def plain(codes, mask, old, lane=lane):
            return oracle.store(old, lane, 64, codes, active(mask, lane))

        def twice(codes, mask, old, lane=lane, step=step):
            on = active(mask, lane)
            after = oracle.store(old, lane, 64, codes, on)
            where = np.full((len(old), 64), 64 // lane.bytes + 2 * step, np.uint32)
            return oracle.store(after, lane, 64 + step * lane.bytes, codes, on), where

        yield Case(
            "asc_storealign",
            kind,
            f"asc_storealign({at(kind, 32, 'q0')}, r0, {32 // lane.bytes}, m0);",
            (kind, "bits"),
            ("raw:512",),
            plain,
            drawers={0: draw.filled(lane)},
        )
        yield Case(
            "asc_storealign_postupdate",
            kind,
            f"__ubuf__ {CTYPE[kind]} *p = {at(kind, 64, 'q0')}; "
            + f"asc_storealign_postupdate(p, r0, {step}, m0); " * 2
            + moved("p", kind, "d0", "q0"),
            (kind, "bits"),
            ("raw:512", "s32"),
            twice,
            drawers={0: draw.filled(lane)},
        )

        def blocks(codes, mask, old, lane=lane):
            return oracle.store_blocks(old, lane, 64, codes, mask, 3)

        def blocks_twice(codes, mask, old, lane=lane):
            after = oracle.store_blocks(old, lane, 64, codes, mask, 3)
            after = oracle.store_blocks(after, lane, 96, codes, mask, 3)
            return after, np.full((len(old), 64), 128 // lane.bytes, np.uint32)

        yield Case(
            "asc_storealign.blocks",
            kind,
            f"asc_storealign({at(kind, 64, 'q0')}, r0, uint16_t(3), uint16_t(1), m0);",
            (kind, "bits"),
            ("raw:832",),
            blocks,
            drawers={0: draw.filled(lane)},
        )
        yield Case(
            "asc_storealign_postupdate.blocks",
            kind,
            f"__ubuf__ {CTYPE[kind]} *p = {at(kind, 64, 'q0')}; "
            + "asc_storealign_postupdate(p, r0, uint16_t(3), uint16_t(1), m0); " * 2
            + moved("p", kind, "d0", "q0"),
            (kind, "bits"),
            ("raw:832", "s32"),
            blocks_twice,
            drawers={0: draw.filled(lane)},
        )
        yield Case(
            "asc_storealign_1st",
            kind,
            f"asc_storealign_1st({at(kind, 64, 'q0')}, r0, 3);",
            (kind,),
            ("raw:512",),
            lambda codes, old, lane=lane: oracle.store(
                old, lane, 64 + 3 * lane.bytes, codes[:, :1], np.ones((len(codes), 1), bool)
            ),
            drawers={0: draw.filled(lane)},
        )
    yield from _packed_stores()


def _packed_stores() -> Iterator[Case]:
    for name, kind, part in (
        ("asc_storealign_pack", "u16", "u8"),
        ("asc_storealign_pack", "u32", "u16"),
        ("asc_storealign_pack", "u64", "u32"),
        ("asc_storealign_pack_quarter", "u32", "u8"),
        ("asc_storealign_pack_quarter", "f32", "u8"),
    ):
        lane, small = LANES[kind], LANES[part]

        def packed(codes, mask, old, lane=lane, small=small):
            return oracle.store(old, small, 64, codes.astype(small.code), active(mask, lane))

        yield Case(
            name,
            kind,
            f"{name}({at(kind, 32, 'q0')}, r0, {32 // lane.bytes}, m0);",
            (kind, "bits"),
            ("raw:512",),
            packed,
            drawers={0: draw.filled(lane)},
        )
    for kind in ("u8", "u16", "f32"):
        lane = LANES[kind]

        def woven(a, b, mask, old, lane=lane):
            on = np.repeat(active(mask, lane), 2, axis=1)
            pairs = np.stack([a, b], axis=2).reshape(len(a), -1)
            return oracle.store(old, lane, 64, pairs, on)

        def halves(a, mask, old, lane=lane):
            middle = lane.count // 2
            pairs = np.stack([a[:, :middle], a[:, middle:]], axis=2).reshape(len(a), -1)
            return oracle.store(old, lane, 64, pairs, active(mask, lane))

        yield Case(
            "asc_storealign_intlv",
            kind,
            f"asc_storealign_intlv({at(kind, 32, 'q0')}, r0, r1, {32 // lane.bytes}, m0);",
            (kind, kind, "bits"),
            ("raw:640",),
            woven,
            drawers={0: draw.filled(lane), 1: draw.filled(lane)},
        )
        yield Case(
            "asc_storealign_intlv.halves",
            kind,
            f"asc_storealign_intlv({at(kind, 32, 'q0')}, r0, {32 // lane.bytes}, m0);",
            (kind, "bits"),
            ("raw:512",),
            halves,
            drawers={0: draw.filled(lane)},
        )


def _predicates() -> Iterator[Case]:
    for dist in ("", "upsample", "downsample"):
        name = "_".join(filter(None, ("asc_loadalign", dist)))
        yield Case(
            f"{name}.predicate",
            "",
            f"{name}(b0, {at('u32', 32)}, 8);",
            ("raw:256",),
            ("bits",),
            lambda memory, dist=dist: oracle.load_bits(dist, memory, 64),
        )
    for name, step in (("asc_storealign", 1), ("asc_storealign_pack", 2)):

        def expect(bits, old, step=step):
            return _write(old, 64, np.packbits(bits[:, ::step], axis=1, bitorder="little"))

        yield Case(
            f"{name}.predicate",
            "",
            f"{name}({at('u32', 32, 'q0')}, m0, 8);",
            ("bits",),
            ("raw:256",),
            expect,
            drawers={0: lambda rng, rows: rng.random((rows, 256)) < 0.6},
        )


def _write(old: np.ndarray, start: int, data: np.ndarray) -> np.ndarray:
    result = old.copy()
    result[:, start : start + data.shape[1]] = data
    return result


BARRIERS = [
    *("VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST"),
    *("SV_ALL", "ST_VLD", "LD_VST", "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST"),
]


def _barrier() -> Iterator[Case]:
    barriers = " ".join(f"asc_mem_bar({b});" for b in BARRIERS)
    yield Case(
        "asc_mem_bar",
        "a load sees the store before it",
        f"asc_storealign({at('f32', 0, 'q0')}, r0, 0, {ALL}); {barriers} "
        f"asc_loadalign(d0, {at('f32', 0, 'q0')}, 0);",
        ("f32",),
        ("raw:256", "f32"),
        lambda codes, old: (codes.view(np.uint8), codes),
        copies=True,
    )


CASES = [*_loads(), *_stores(), *_predicates(), *_barrier()]
