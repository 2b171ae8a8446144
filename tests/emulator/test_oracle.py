"""The oracles themselves: against ml_dtypes, exact fractions, and definitions spelled out."""

from __future__ import annotations

import bisect
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.oracle import casts, cube, lanes
from tests.emulator.oracle.formats import (
    BF16,
    E1M2,
    E2M1,
    E4M3,
    E5M2,
    F16,
    ROUNDINGS,
    Format,
    decode_e8m0,
)
from tests.emulator.oracle.types import LANES

TWINS = {
    F16: np.float16,
    BF16: ml_dtypes.bfloat16,
    E4M3: ml_dtypes.float8_e4m3fn,
    E5M2: ml_dtypes.float8_e5m2,
    E2M1: ml_dtypes.float4_e2m1fn,
}
FORMATS = [pytest.param(f, id=f.name) for f in TWINS]


def codes_of(form: Format) -> np.ndarray:
    """Every code of a format."""
    return np.arange(2 * form.sign, dtype=np.uint32)


@pytest.mark.parametrize("form", FORMATS)
def test_values_are_those_of_ml_dtypes(form: Format) -> None:
    codes = codes_of(form).astype(np.uint16 if form.sign > 128 else np.uint8)
    with np.errstate(invalid="ignore"):
        twin = codes.view(TWINS[form]).astype(np.float64)
    np.testing.assert_array_equal(form.decode(codes), twin)
    np.testing.assert_array_equal(np.signbit(form.decode(codes)), np.signbit(twin))


@pytest.mark.parametrize("form", FORMATS)
def test_nearest_even_is_that_of_ml_dtypes(form: Format, seed: int) -> None:
    """Every value, every midpoint, their neighbours in float32, and random numbers."""
    rng = np.random.default_rng(seed)
    values = np.unique(np.abs(form.values))
    line = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    near = line.astype(np.float32)
    around = [np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(np.inf))]
    noise = rng.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    x = np.concatenate([*around, noise]).astype(np.float32)
    # Overflow is a policy of ours: ml_dtypes has another one for formats without infinity.
    x = x[np.isfinite(x) & (np.abs(x) <= values[-1])]
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        twin = x.astype(TWINS[form]).view(np.uint16 if form.sign > 128 else np.uint8)
    np.testing.assert_array_equal(form.encode(x.astype(np.float64)), twin)


@pytest.mark.parametrize("form", [*FORMATS, pytest.param(E1M2, id="e1m2")])
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_rounding_modes_follow_their_definition(form: Format, mode: str, seed: int) -> None:
    """Against the two neighbours, searched one by one, as exact fractions."""
    rng = np.random.default_rng(seed)
    top = float(form.values[-1])
    values = form.values.tolist()
    numbers = np.concatenate([rng.uniform(-top, top, 40), rng.uniform(-1, 1, 40) * top / 1000])
    middles = (form.values[1:] + form.values[:-1]) / 2
    numbers = np.concatenate([numbers, rng.choice(middles, 20), -rng.choice(middles, 20)])
    got = form.encode(numbers, mode)
    for x, code in zip(numbers, got):
        exact, size = Fraction(float(x)), abs(Fraction(float(x)))
        low = bisect.bisect_right(values, abs(float(x))) - 1
        choices = [low] if values[low] == size else [low, low + 1]
        signed = {i: (-1 if exact < 0 else 1) * Fraction(values[i]) for i in choices}
        gap = {i: abs(signed[i] - exact) for i in choices}
        wanted = {
            "R": min(choices, key=lambda i: (gap[i], i & 1)),
            "A": min(choices, key=lambda i: (gap[i], -i)),
            "H": min(choices, key=lambda i: (gap[i], -i)),
            "F": min(choices, key=lambda i: signed[i]),
            "C": max(choices, key=lambda i: signed[i]),
            "Z": low,
            "O": choices[0] if len(choices) == 1 else next(i for i in choices if i & 1),
        }[mode]
        assert int(code) & (form.sign - 1) == wanted, (form.name, mode, x)


@pytest.mark.parametrize(
    ("form", "saturate", "codes"),
    [
        (F16, False, (0x7BFF, 0x7C00, 0x7C00)),
        (F16, True, (0x7BFF, 0x7BFF, 0x7BFF)),
        (E4M3, False, (0x7E, 0x7F, 0x7F)),
        (E4M3, True, (0x7E, 0x7E, 0x7E)),
        (E5M2, False, (0x7B, 0x7C, 0x7C)),
        (E5M2, True, (0x7B, 0x7B, 0x7B)),
        (E2M1, False, (0x7, 0x7, 0x7)),
    ],
)
def test_overflow_policy(form: Format, saturate: bool, codes: tuple[int, ...]) -> None:
    """The largest value, one nearer to what would follow, infinity; both signs."""
    top = float(form.values[-1])
    step = top - float(form.values[-2])
    x = np.array([top, top + 0.75 * step, np.inf])
    assert tuple(form.encode(x, "R", saturate)) == codes
    assert tuple(form.encode(-x, "R", saturate)) == tuple(c | form.sign for c in codes)
    inwards = form.encode(np.array([top + step, -top - step]), "Z", saturate)
    assert list(inwards) == [form.largest, form.largest | form.sign]


def test_scales_are_those_of_ml_dtypes() -> None:
    codes = np.arange(256, dtype=np.uint8)
    twin = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    np.testing.assert_array_equal(decode_e8m0(codes), twin)


def test_four_bit_values() -> None:
    assert list(E2M1.values) == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert list(E1M2.values) == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
def test_multiply_add_rounds_the_exact_sum(kind: str, seed: int) -> None:
    """Products and addends of very different size, against fractions."""
    rng, lane = np.random.default_rng(seed), LANES[kind]
    shape = 400
    span = 6 if kind == "f16" else 30
    x, y, z = (
        lane.codes(rng.normal(size=shape) * 2.0 ** rng.integers(-span, span, shape))
        for _ in range(3)
    )
    z[::3] = lane.codes(-lane.values(x[::3]) * lane.values(y[::3]))  # cancels but for the rounding
    got = lanes.fma(lane, x, y, z)
    for a, b, c, code in zip(*(lane.values(v) for v in (x, y, z)), got):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        result = float(lane.values(np.array([code]))[0])
        if not np.isfinite(result):
            continue
        value = Fraction(result)
        for neighbour in (int(code) - 1, int(code) + 1):
            other = lane.values(np.array([neighbour & ((1 << 8 * lane.bytes) - 1)], lane.code))[0]
            if np.isfinite(other):
                assert abs(value - exact) <= abs(Fraction(float(other)) - exact)


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_integers_to_float32(mode: str) -> None:
    """Around 2^24 every second integer is a tie."""
    x = np.array([(1 << 24) + d for d in range(-3, 9)], np.int64)
    x = np.concatenate([x, -x])
    got = casts.integer_to_f32(x, mode).view(np.float32)
    for value, result in zip(x.tolist(), got.tolist()):
        low, high = value - value % 2, value + value % 2
        if abs(value) <= 1 << 24:
            low = high = value
        even = low if low % 4 == 0 else high
        away = high if value > 0 else low
        wanted = {
            "R": value if low == high else even,
            "A": away,
            "H": away,
            "F": low,
            "C": high,
            "Z": low if value > 0 else high,
            "O": value if low == high else low + high - even,
        }[mode]
        assert result == wanted, (mode, value)


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_floats_to_integers(mode: str) -> None:
    x = np.array([-2.5, -1.75, -1.5, -0.5, -0.25, 0.0, 0.25, 0.5, 1.5, 1.75, 2.5])
    wanted = {
        "R": [-2, -2, -2, 0, 0, 0, 0, 0, 2, 2, 2],
        "A": [-3, -2, -2, -1, 0, 0, 0, 1, 2, 2, 3],
        "H": [-3, -2, -2, -1, 0, 0, 0, 1, 2, 2, 3],
        "F": [-3, -2, -2, -1, -1, 0, 0, 0, 1, 1, 2],
        "C": [-2, -1, -1, 0, 0, 0, 1, 1, 2, 2, 3],
        "Z": [-2, -1, -1, 0, 0, 0, 0, 0, 1, 1, 2],
        "O": [-3, -1, -1, -1, -1, 0, 1, 1, 1, 1, 3],
    }[mode]
    s32 = LANES["s32"]
    assert s32.values(casts.to_integer(x, s32, mode, False)).tolist() == wanted
    far = np.array([1e10, -1e10, np.inf, -np.inf, np.nan])
    saturated = s32.values(casts.to_integer(far, s32, mode, True)).tolist()
    assert saturated == [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0]
    wrapped = s32.values(casts.to_integer(far[:2], s32, mode, False)).tolist()
    assert wrapped == [10**10 - 2 * 2**32, -(10**10) + 2 * 2**32]


def test_fractals_place_every_element() -> None:
    """Element (r, c) of a 21 x 40 tile of halves, by the formula."""
    codes = np.arange(21 * 40, dtype=np.uint16).reshape(21, 40)
    tile = cube.fractals(codes, "f16").view(np.uint16)
    for r, c in ((0, 0), (20, 39), (16, 15), (15, 16), (5, 33)):
        assert tile[((c // 16) * 2 + r // 16) * 256 + (r % 16) * 16 + c % 16] == codes[r, c]
