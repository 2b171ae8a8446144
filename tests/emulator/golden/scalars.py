"""Scalar functions, packed conversions and min/max: names without a hook of their own.

The kernel applies a function to arrays in global memory; told to, it spoils each result itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.emulator.golden.program import Check, compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle.formats import BF16, E4M3, E5M2, F16
from tests.emulator.oracle.functions import EDGES, FUNCTIONS
from tests.emulator.oracle.types import LANES, ulps

TEXT = (Path(__file__).parent / "scalars.asc").read_text()


class Bench:
    """Expressions of two arguments, compiled together."""

    def __init__(self) -> None:
        self.cases: list[str] = []

    def add(self, expression: str, result: str, argument: str) -> int:
        """Registers ``expression`` over x and y; its number."""
        self.cases.append(
            f"    case {len(self.cases)}: apply<{result}, {argument}>(out, a, b, n, wrong, "
            f"[]({argument} x, {argument} y) {{ return {expression}; }}); break;"
        )
        return len(self.cases) - 1

    def run(
        self, which: int, result: np.dtype, a: np.ndarray, b: np.ndarray, wrong: int
    ) -> np.ndarray:
        text = TEXT.replace("//CASES", "\n".join(self.cases))
        out = np.zeros(len(a), result)
        launch(compiled(text), [out, a.copy(), b.copy(), len(a), which, wrong], trace=1)
        return out


BENCH = Bench()
COUNT = 600


def _judge(kind: str, got: np.ndarray, want: np.ndarray, ulp: int, name: str) -> str:
    lane = LANES[kind]
    exact = lane.codes(want)
    wrong = ulps(lane, got, exact) > ulp
    if ulp == 0:
        wrong = (got != exact) & ~(lane.is_nan(got) & lane.is_nan(exact))
    return first_difference(lane.values(got), lane.values(exact), name, wrong)


def _arguments(name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    _, _, low, high = FUNCTIONS[name]
    ordinary = rng.uniform(low, high, COUNT)
    return LANES[kind].codes(np.concatenate([ordinary, EDGES]))


def _mathematics() -> Iterator[Check]:
    for stem, (function, ulp, _, _) in FUNCTIONS.items():
        for kind, ctype in (("f32", "float"), ("f16", "half")):
            name = f"{stem}f" if kind == "f32" else f"h{stem}"
            which = BENCH.add(f"{name}(x)", ctype, ctype)

            def run(rng, wrong, stem=stem, kind=kind, which=which, f=function, ulp=ulp, name=name):
                a = _arguments(stem, kind, rng)
                with np.errstate(all="ignore"):
                    want = f(LANES[kind].values(a))
                # A float16 result may still fall on the other side of a tie.
                allowed = min(ulp, 1) if kind == "f16" else ulp
                got = BENCH.run(which, LANES[kind].code, a, a, wrong * (16 if allowed else 1))
                return _judge(kind, got, want, allowed, name)

            yield Check((name,), kind, run, hooked=False)
    for kind, ctype, name in (("f32", "float", "atan2f"), ("f16", "half", "hatan2")):
        which = BENCH.add(f"{name}(x, y)", ctype, ctype)

        def atan2(rng, wrong, kind=kind, which=which, name=name):
            y, x = (LANES[kind].codes(rng.uniform(-4, 4, COUNT)) for _ in range(2))
            y[:4], x[:4] = LANES[kind].codes(np.array([0.0, -0.0, 1.0, np.inf])), 0
            want = np.arctan2(LANES[kind].values(y), LANES[kind].values(x))
            got = BENCH.run(which, LANES[kind].code, y, x, wrong * 16)
            return _judge(kind, got, want, 1, name)

        yield Check((name,), kind, atan2, hooked=False)
    which = BENCH.add(
        "([&] { float s, c; sincosf(x, &s, &c); return y > 0 ? s : c; }())", "float", "float"
    )

    def sincos(rng, wrong, which=which):
        x = rng.uniform(-7, 7, COUNT).astype(np.float32)
        y = rng.choice([-1, 1], COUNT).astype(np.float32)
        want = np.where(y > 0, np.sin(x.astype(np.float64)), np.cos(x.astype(np.float64)))
        got = BENCH.run(which, np.dtype("u4"), x.view("u4"), y.view("u4"), wrong * 16)
        return _judge("f32", got, want, 1, "sincosf")

    yield Check(("sincosf",), "f32", sincos, hooked=False)


EXTREMES = {"f32": "float", "s32": "int32_t", "u32": "uint32_t", "f16": "half"}


def _extremes() -> Iterator[Check]:
    for name, function in (("min", np.minimum), ("max", np.maximum)):
        for kind, ctype in EXTREMES.items():
            which = BENCH.add(f"{name}(x, y)", ctype, ctype)

            def run(rng, wrong, kind=kind, which=which, f=function, name=name):
                lane = LANES[kind]
                a, b = (
                    lane.codes(draw(-99, 99, COUNT))
                    for draw in [rng.uniform if lane.kind == "f" else rng.integers] * 2
                )
                want = lane.codes(f(lane.values(a), lane.values(b)))
                return first_difference(BENCH.run(which, lane.code, a, b, wrong), want, name)

            yield Check((name,), kind, run, hooked=False)
        which = BENCH.add(f"{name}(x, int64_t(7))", "int64_t", "int32_t")

        def mixed(rng, wrong, which=which, f=function, name=name):
            a = rng.integers(-20, 20, COUNT).astype(np.int32)
            got = BENCH.run(which, np.dtype("i8"), a, a, wrong)
            return first_difference(got, f(a, 7).astype(np.int64), f"{name} of two types")

        yield Check((name,), "two integer types", mixed, hooked=False)


def _all_codes(width: int) -> np.ndarray:
    return np.arange(1 << width, dtype=np.uint32).astype(f"u{width // 8}")


def _floats(rng: np.random.Generator) -> np.ndarray:
    """Float32 codes of every size; special values."""
    anything = rng.integers(0, 1 << 32, 3000, dtype=np.uint32)
    usual = rng.normal(0, 50, 3000).astype(np.float32).view(np.uint32)
    edges = [448, 464, 480, 57344, 61440, 65504, 65520]
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, *edges])
    return np.concatenate([anything, usual, special.astype(np.float32).view(np.uint32)])


def _conversions() -> Iterator[Check]:
    f32 = LANES["f32"]
    # To float32: exact.
    widening = (
        ("__e4m3x22float2", "float8_e4m3x2_t", E4M3, 8),
        ("__e5m2x22float2", "float8_e5m2x2_t", E5M2, 8),
        ("__half22float2", "half2", F16, 16),
        ("__bfloat1622float2", "bfloat16x2_t", BF16, 16),
    )
    for name, argument, form, width in widening:
        which = BENCH.add(f"{name}(x)", "float2", argument)

        def widen(rng, wrong, which=which, form=form, width=width, name=name):
            a = rng.permutation(_all_codes(width))
            pairs = a.view(f"u{width // 4}")
            got = BENCH.run(which, np.dtype("u8"), pairs, pairs, wrong)
            want = form.decode(a)
            return _judge("f32", got.view(np.uint32), want, 0, name)

        yield Check((name,), "every code", widen, hooked=False)
    which = BENCH.add("__bfloat162float(x)", "float", "bfloat16_t")

    def one(rng, wrong, which=which):
        a = _all_codes(16)
        return _judge("f32", BENCH.run(which, np.dtype("u4"), a, a, wrong), BF16.decode(a), 0, "")

    yield Check(("__bfloat162float",), "every code", one, hooked=False)
    # From float32: to nearest even, beyond the largest to infinity (fp8: as asked).
    narrowing = [
        ("__float22half2_rn", "__float22half2_rn(x)", "half2", F16, 2, False),
        ("__float22bfloat162_rn", "__float22bfloat162_rn(x)", "bfloat16x2_t", BF16, 2, False),
        ("__float2bfloat16_rn", "__float2bfloat16_rn(x)", "bfloat16_t", BF16, 1, False),
    ]
    for form, word in ((E4M3, "__ASC_E4M3"), (E5M2, "__ASC_E5M2")):
        for saturate, flag in ((True, "__ASC_SATFINITE"), (False, "__ASC_NOSAT")):
            narrowing.append(
                (
                    "__asc_cvt_float2_to_fp8x2",
                    f"__asc_cvt_float2_to_fp8x2(x, {flag}, {word})",
                    "__asc_fp8x2_storage_t",
                    form,
                    2,
                    saturate,
                )
            )
    for name, expression, result, form, lanes, saturate in narrowing:
        which = BENCH.add(expression, result, "float2" if lanes == 2 else "float")

        def narrow(rng, wrong, which=which, form=form, lanes=lanes, sat=saturate, name=name):
            a = _floats(rng)
            width = 2 if form in (F16, BF16) else 1
            view = a.view(np.uint64) if lanes == 2 else a
            got = BENCH.run(which, np.dtype(f"u{lanes * width}"), view, view, wrong)
            got = got.view(f"u{width}")
            want = form.encode(f32.values(a), "R", sat).astype(got.dtype)
            wrong_at = (got != want) & ~(form.is_nan(got) & form.is_nan(want))
            return first_difference(got, want, name, wrong_at)

        yield Check((name,), expression, narrow, hooked=False)


CHECKS = [*_mathematics(), *_extremes(), *_conversions()]
