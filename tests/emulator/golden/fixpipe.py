"""FixPipe to global memory: orders, strides, conversions, ReLU, atomics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ascendkit.emulator.errors import EmulatorError
from tests.emulator.golden.casts import sources
from tests.emulator.golden.cube_run import Setting, expected, run, small, tiled
from tests.emulator.golden.program import Check, all_of, first_difference
from tests.emulator.oracle import cube as oracle
from tests.emulator.oracle.types import LANES

NZ, ND, DN = range(3)
F32 = ("f32", "f32", False)
QUANT = (("f16", 1), ("bf16", 16), ("s8", 9), ("s16", 28), ("e4m3", 13), ("e5m2", 13))


def _through(values: np.ndarray, before: np.ndarray, **options: object) -> np.ndarray:
    """Float32 codes (rows, columns <= 32) through the accumulator to global memory."""
    rows, columns = values.shape
    one = LANES["f32"].codes(np.eye(columns))
    s = Setting(F32, tiled(values, "f32"), tiled(one, "f32"), (rows, columns, columns), **options)
    return run(s, before)


def _numbers(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return LANES["f32"].codes(rng.uniform(-300, 300, shape))


def _orders(rng: np.random.Generator, wrong: int) -> str:
    """21 rows of 29 columns, as rows and as columns some distance apart, and as fractals."""
    codes = _numbers(rng, (21, 29))
    verdicts = []
    for order, outer, inner, pitch in ((ND, 21, 29, 35), (DN, 29, 21, 40)):
        before = rng.integers(0, 1 << 32, (outer, pitch), dtype=np.uint32)
        got = _through(codes, before, out={"stride": pitch, "order": order})
        want = before.copy()
        want[:, :inner] = codes if order == ND else codes.T
        verdicts.append(first_difference(got, want, ("NZ", "ND", "DN")[order]))
    # Fractals of 16 columns, 64 bytes a row, 50 x 32 bytes from group to group. Only columns that
    # exist are written (guessed), so nothing need lie behind the last element.
    before = rng.integers(0, 1 << 32, (400 + 20 * 16 + 13,), dtype=np.uint32)
    got = _through(codes, before, out={"stride": 50, "order": NZ})
    want = before.copy()
    for group, block in enumerate(oracle.accumulator(codes)[:, :21]):
        for row, line in enumerate(block):
            at = group * 400 + row * 16
            want[at : at + (16, 13)[group]] = line[: (16, 13)[group]]
    verdicts.append(first_difference(got, want, "NZ"))
    return all_of(verdicts)


def _integers(rng: np.random.Generator, wrong: int) -> str:
    """An int32 accumulator leaves as it is, or without its negative numbers."""
    a, b = small("s8", rng, (32, 64)), small("s8", rng, (16, 64))
    verdicts = []
    for relu in (0, 1):
        s = Setting(
            ("s8", "s8", False), tiled(a, "s8"), tiled(b, "s8"), (32, 64, 16), out={"relu": relu}
        )
        got = run(s, np.zeros((32, 16), np.int32))
        want = expected(s, a, b).astype(np.int32)
        want = np.maximum(want, 0) if relu else want
        verdicts.append(first_difference(got, want, f"int32, relu {relu}"))
    return all_of(verdicts)


def _conversions() -> Iterator[Check]:
    for target, quant in QUANT:
        lane = LANES[target]

        def run_it(rng, wrong, target=target, quant=quant, lane=lane):
            pool = sources("f32", target)
            pool = pool[np.isfinite(LANES["f32"].values(pool))]
            verdicts = []
            for relu in (0, 1):
                codes = rng.choice(pool, (48, 32))
                codes[0, 0] = LANES["f32"].codes(np.array([3.0]))[0]
                out = {"quant": quant, "relu": relu, "e5m2": int(target == "e5m2")}
                got = _through(codes, np.zeros((48, 32), lane.code), out=out)
                x = codes.view(np.float32)
                # The sum with zero products turns -0 into +0.
                x = np.where(x == 0, np.float32(0), np.maximum(x, 0) if relu else x)
                want = oracle.convert(x, quant, target)
                verdicts.append(first_difference(got, want, f"{target}, relu {relu}"))
            return all_of(verdicts)

        yield Check(("asc_copy_l0c2gm",), f"float32 to {target}", run_it)


def _atomic(rng: np.random.Generator, wrong: int) -> str:
    codes = LANES["f32"].codes(rng.integers(-99, 99, (20, 16)).astype(np.float64))
    before = rng.integers(-99, 99, (20, 16)).astype(np.float32)
    got = _through(codes, before, atomic=True)
    return first_difference(got, before + codes.view(np.float32), "added to memory")


def _matrices(rng: np.random.Generator, wrong: int) -> str:
    """More than one matrix at once is refused, not ignored."""
    codes = _numbers(rng, (16, 16))
    try:
        _through(codes, np.zeros((16, 16), np.float32), count=2)
    except EmulatorError as error:
        return "" if error.code == "AK-UNSUPPORTED-005" else str(error)
    return "two matrices at once were not refused"


CHECKS = [
    Check(("asc_copy_l0c2gm",), "rows, columns, fractals", _orders),
    Check(("asc_copy_l0c2gm",), "int32", _integers),
    *_conversions(),
    Check(("asc_copy_l0c2gm", "asc_set_atomic_add_float"), "atomic", _atomic),
    Check(("asc_set_l0c_copy_nz_para",), "one matrix", _matrices),
]
