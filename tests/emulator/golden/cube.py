"""The cube core: NZ copies, L0 loads, products, scales and modes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.emulator.golden.cube_run import (
    DN2NZ,
    EIGHT,
    FOUR,
    ND2NZ,
    PLAIN,
    TYPES,
    Operand,
    Scales,
    Setting,
    Types,
    multiply,
    run,
    small,
    tiled,
)
from tests.emulator.golden.program import Check, all_of, first_difference
from tests.emulator.oracle import cube as oracle
from tests.emulator.oracle.types import LANES, ulps

SHAPES = ((16, 64, 16), (37, 96, 45), (1, 64, 16), (48, 40, 20))
"""m, k, n: whole fractals, tails, one row, a K that ends inside a fractal."""


def _products() -> Iterator[Check]:
    for types in TYPES:

        def run_it(rng, wrong, types=types):
            verdicts = []
            for m, k, n in SHAPES:
                a, b = small(types[0], rng, (m, k)), small(types[1], rng, (n, k))
                verdicts.append(multiply(a, b, types, repeat=2 if m == 37 else 1))
            return all_of(verdicts)

        name = "asc_mmad_mx" if types[2] else "asc_mmad"
        yield Check((name,), f"{types[0]} x {types[1]}", run_it)


def _rounding(rng: np.random.Generator, wrong: int) -> str:
    """Random float32 operands: the sum is rounded once, so within one unit of the exact one."""
    lane = LANES["f32"]
    a, b = (lane.codes(rng.normal(size=(16, 64))) for _ in range(2))
    s = Setting(("f32", "f32", False), tiled(a, "f32"), tiled(b, "f32"), (16, 64, 16))
    got = run(s, np.zeros((16, 16), np.float32))
    want = oracle.product(lane.values(a), lane.values(b))
    far = ulps(lane, got.view(np.uint32), want.view(np.uint32)) > 1
    return first_difference(got, want, "rounded sum", far)


def _hf32(rng: np.random.Generator, wrong: int) -> str:
    """Operands with ties at the twelfth bit; off again after asc_disable_hf32."""
    lane, verdicts = LANES["f32"], []
    grid = rng.integers(1 << 12, 1 << 13, (16, 32)) / 2.0**12 * rng.choice([-1, 1], (16, 32))
    ones = np.eye(16, 32)
    a, b = tiled(lane.codes(grid), "f32"), tiled(lane.codes(ones), "f32")
    for mode, away in ((1, True), (2, False), (3, None), (0, None)):
        s = Setting(("f32", "f32", False), a, b, (16, 32, 16), hf32=mode)
        got = run(s, np.zeros((16, 16), np.float32))
        kept = grid if away is None else oracle.hf32(grid, away)
        verdicts.append(first_difference(got, (kept @ ones.T).astype(np.float32), f"hf32 {mode}"))
    return all_of(verdicts)


def _directions(rng: np.random.Generator, wrong: int) -> str:
    a, b = small("bf16", rng, (32, 48)), small("bf16", rng, (48, 48))
    return all_of(multiply(a, b, ("bf16", "bf16", False), direction=d) for d in (1, 2))


def _both_sides(part: np.ndarray, load: Operand, types: Types, rng: np.random.Generator) -> str:
    """The loaded tile as A, then as B, against a plain operand."""
    other = small(types[0], rng, (16, part.shape[1]))
    return all_of(
        [
            multiply(part, other, types, left=load),
            multiply(other, part, types, right=load),
        ]
    )


def _loads() -> Iterator[Check]:
    same = [(k, k, False) for k in (*PLAIN, *EIGHT)] + [(k, k, True) for k in FOUR]
    for types in same:
        kind = types[0]
        width = oracle.c0(kind)

        def window(rng, wrong, types=types, kind=kind, width=width):
            # 2 x 2 fractals out of 5 x 4.
            whole = small(kind, rng, (80, 4 * width))
            load = Operand(oracle.fractals(whole, kind), start=(2, 1), steps=(2, 2), strides=(5, 2))
            return _both_sides(whole[32:64, width : 3 * width], load, types, rng)

        def transposed(rng, wrong, types=types, kind=kind, width=width):
            # The source has K along its rows: 128 of 192 of them, and some columns.
            whole = small(kind, rng, (192, 4 * width))
            columns = max(width, 16)
            load = Operand(
                oracle.fractals(whole, kind),
                transpose=True,
                start=(4, 1),
                steps=(8, columns // width),
                strides=(12, columns // 16),
            )
            part = np.ascontiguousarray(whole[64:192, width : width + columns].T)
            return _both_sides(part, load, types, rng)

        loads = ("asc_copy_l12l0a", "asc_copy_l12l0b")
        yield Check(loads, f"2 x 2 fractals of {kind}", window)
        yield Check(tuple(f"{n}_transpose" for n in loads), kind, transposed)


def _scales() -> Iterator[Check]:
    for types in TYPES:
        if not types[2]:
            continue

        def run_it(rng, wrong, types=types):
            a, b = small(types[0], rng, (32, 128)), small(types[1], rng, (16, 128))
            # Blocks out of a larger matrix of scales, none of them one.
            scales = tuple(
                Scales(rng.integers(122, 127, (64, 12)).astype(np.uint8), (1, 2), len(x), 4)
                for x in (a, b)
            )
            return multiply(a, b, types, scales=scales)

        names = ("asc_copy_l12l0a_mx", "asc_copy_l12l0b_mx")
        yield Check(names, f"{types[0]} x {types[1]}", run_it)


def _copied(kind: str, mode: int, rng: np.random.Generator) -> str:
    """A 21 x (C0 + 3) matrix through an NZ copy into a tile of 48 rows a group."""
    lane, width = LANES[kind], oracle.c0(kind)
    rows, columns = 21, width + 3
    codes = small(kind, rng, (rows, columns))
    source = codes if mode == ND2NZ else np.ascontiguousarray(codes.T)
    pitch = source.shape[1] * lane.bytes + 24
    memory = rng.integers(0, 256, (len(source), pitch), dtype=np.uint8)
    memory[:, : source.shape[1] * lane.bytes] = source.view(np.uint8)
    load = Operand(memory.reshape(-1), mode, rows, columns, pitch, 48, steps=(2, 2), strides=(3, 2))
    other = small(kind, rng, (16, columns))
    types = (kind, kind, False)
    # The last column group is filled up with zeros, so K may run to its end.
    wide = [np.pad(x, ((0, 0), (0, 2 * width - columns))) for x in (codes, other)]
    return all_of([multiply(codes, other, types, left=load), multiply(*wide, types, left=load)])


def _nz_copies() -> Iterator[Check]:
    for mode, name in ((ND2NZ, "asc_copy_gm2l1_nd2nz"), (DN2NZ, "asc_copy_gm2l1_dn2nz")):
        for kind in ("s8", "f16", "bf16", "f32"):
            yield Check(
                (name, "asc_set_gm2l1_nz_para"),
                kind,
                lambda rng, wrong, kind=kind, mode=mode: _copied(kind, mode, rng),
            )


def _fills(rng: np.random.Generator, wrong: int) -> str:
    """Constants over parts of a tile that held other numbers."""
    lane, verdicts = LANES["f16"], []
    for bits, value, blocks in ((16, 0x4500, 3), (32, 0x4100_4680, 2)):
        codes = small("f16", rng, (32, 32))
        tile = oracle.fractals(codes, "f16")
        filled = tile.copy().reshape(-1, 32)
        words = np.full(32 * 8 // bits, value, f"u{bits // 8}").view(np.uint8)
        for r in range(4):  # runs of blocks, 5 free ones between them
            filled[4 + r * (blocks + 5) : 4 + r * (blocks + 5) + blocks] = words
        want_codes = filled.reshape(2, 32, 32).view(lane.code).transpose(1, 0, 2).reshape(32, 32)
        other = small("f16", rng, (16, 32))
        load = Operand(tile, steps=(2, 2), strides=(2, 2))
        verdicts.append(
            multiply(
                np.ascontiguousarray(want_codes),
                other,
                ("f16", "f16", False),
                left=load,
                fill=(bits, value, 128, 4, blocks, 5),
            )
        )
    return all_of(verdicts)


CHECKS = [
    *_products(),
    Check(("asc_mmad",), "rounded once", _rounding),
    Check(("asc_enable_hf32", "asc_disable_hf32", "asc_set_hf32_round_mode"), "ties", _hf32),
    Check(("asc_set_mmad_direction_m", "asc_set_mmad_direction_n"), "same values", _directions),
    *_loads(),
    *_scales(),
    *_nz_copies(),
    Check(("asc_fill_l1",), "16- and 32-bit words", _fills),
]
