"""The comparers, against NumPy and plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from ascendkit.op import Contract
from ascendkit.testing import bitwise, calc_diff, close, compare, generator, set_equal, ulp, wide
from ascendkit.testing.bits import ordered

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("dtype", FLOATS + NARROW + INTEGERS + UNSIGNED, ids=str)
@pytest.mark.parametrize("measure", [bitwise, ulp, close, set_equal])
def test_one_wrong_element_is_found_named_and_counted(measure, dtype):
    want = torch.ones(3, 4).to(dtype)
    got = torch.ones(3, 4)
    got[1, 2] = 0 if dtype == torch.bool else 4
    got = got.to(dtype)
    assert measure(want.clone(), want).ok
    verdict = measure(got, want)
    assert not verdict.ok
    assert (verdict.mismatches, verdict.total) == (1, 12)
    row, _ = verdict.worst
    assert row == 1
    assert verdict.got == (0 if dtype == torch.bool else 4) and verdict.want == 1
    assert "1 of 12" in verdict.message


@pytest.mark.parametrize("measure", [bitwise, ulp, close])
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_must_stand_at_the_same_places(measure, special, dtype):
    plain = torch.ones(5, dtype=dtype)
    marked = plain.clone()
    marked[3] = special
    assert measure(marked, marked.clone()).ok
    pairs = [(marked, plain), (plain, marked)]
    if special == special:
        pairs.append((marked, -marked))
    for got, want in pairs:
        # No limit is wide enough for a NaN or an infinity on one side only.
        limit = () if measure is bitwise else (torch.inf,)
        verdict = measure(got, want, *limit)
        assert not verdict.ok and "mask" in verdict.message and verdict.worst == (3,)


def test_nan_payload_does_not_count_but_the_sign_of_zero_does():
    quiet = torch.tensor([0x7FC00000, 0], dtype=torch.int32).view(torch.float32)
    other = torch.tensor([-1, 0], dtype=torch.int32).view(torch.float32)
    assert bitwise(quiet, other)
    assert not bitwise(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert ulp(torch.tensor([0.0]), torch.tensor([-0.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_ulp_counts_steps_of_nextafter(seed, dtype):
    start = wide((64,), generator(seed), dtype, -20, 10).numpy()
    start[0], start[1] = 0.0, -0.0
    stepped, steps = start.copy(), np.arange(64) % 7
    for i, n in enumerate(steps):
        for _ in range(n):
            stepped[i] = np.nextafter(stepped[i], start.dtype.type(np.inf))
    verdict = ulp(torch.from_numpy(stepped), torch.from_numpy(start), 6)
    assert verdict.ok and verdict.value == 6
    assert not ulp(torch.from_numpy(stepped), torch.from_numpy(start), 5)


@pytest.mark.parametrize("dtype", [*NARROW, torch.float16, torch.bfloat16], ids=str)
def test_every_pair_of_neighbours_is_one_ulp_apart(dtype):
    width = torch.empty(0, dtype=dtype).element_size()
    codes = torch.arange(1 << 8 * width).to({1: torch.uint8, 2: torch.int16}[width])
    values = codes.view(dtype)
    values = values[values.float().isfinite()]
    order = values.double().argsort(stable=True)
    ranked = values.view(codes.dtype)[order].view(dtype)
    # -0 and +0 are one place, and the only one with two codes.
    distinct = ranked.double().diff() != 0
    distance = ordered(ranked).diff()
    assert distance.eq(distinct.long()).all()
    assert ulp(ranked[1:], ranked[:-1], 1) and not ulp(ranked[2:], ranked[:-2], 1)


def test_ulp_distance_of_extreme_doubles_does_not_wrap():
    low = torch.tensor([-1.7e308], dtype=torch.float64)
    high = torch.tensor([1.7e308], dtype=torch.float64)
    verdict = ulp(low, high, 1e18)
    assert not verdict.ok and verdict.value > 1.8e19


def test_calc_diff_is_the_formula(seed):
    g = generator(seed)
    x, y = wide((200,), g, low=-30, high=30), wide((200,), g, low=-30, high=30)
    a, b = x.double().numpy(), y.double().numpy()
    wanted = ((a - b) ** 2).sum() / (a**2 + b**2).sum()
    assert calc_diff(x, y) == pytest.approx(wanted, rel=1e-12)
    assert calc_diff(x, x) == 0.0
    assert calc_diff(torch.zeros(3), torch.zeros(3)) == 0.0 == calc_diff(x[:0], y[:0])
    huge = torch.full((2,), 1e300, dtype=torch.float64)
    assert calc_diff(huge, -huge) == pytest.approx(2.0)
    assert calc_diff(huge * 1e-600, torch.zeros(2)) == 0.0


def test_calc_diff_with_nan_never_passes():
    x = torch.tensor([1.0, torch.nan])
    assert calc_diff(x, x) != calc_diff(x, x)
    verdict = close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), float("nan"))
    assert not verdict.ok


def test_set_equal_is_a_multiset_of_each_row(seed):
    g = generator(seed)
    for _ in range(50):
        a = torch.randint(0, 3, (2, 4), generator=g)
        b = torch.randint(0, 3, (2, 4), generator=g)
        wanted = all(Counter(x) == Counter(y) for x, y in zip(a.tolist(), b.tolist()))
        assert set_equal(a, b).ok == wanted
    nan = torch.tensor([[torch.nan, 1.0, -torch.inf]])
    assert set_equal(nan, nan.flip(-1))
    assert not set_equal(nan, torch.tensor([[torch.nan, torch.nan, -torch.inf]]))
    payloads = torch.tensor([[0x7FC00000, -1]], dtype=torch.int32).view(torch.float32)
    assert set_equal(payloads, payloads[:, :1].expand(1, 2).contiguous())


def test_metadata_comes_first():
    x = torch.ones(2, 3)
    assert "dtype" in bitwise(x, x.double()).message
    assert "shape" in close(x, x.T.contiguous(), 1.0).message
    assert "strides" in bitwise(x, torch.ones(3, 2).T).message
    assert ulp(x, torch.ones(3, 2).T)
    one = torch.ones(1, 3)
    assert bitwise(one, one.as_strided((1, 3), (77, 1)))
    assert "shape" in bitwise(x[:0], x[:, :0]).message
    assert bitwise(x[:0], x[:0])


def test_compare_reaches_into_tuples_and_scalars():
    exact = Contract("bitwise")
    x, y = torch.ones(2), torch.zeros(2)
    assert compare(exact, (x, None, 3), (x, None, 3))
    verdict = compare(exact, (x, (x, x)), [x, (x, y)])
    assert not verdict and verdict.message.startswith("output[1][1]") and verdict.total == 6
    assert not compare(exact, (x,), (x, x))
    assert not compare(exact, x, None)
    assert not compare(exact, 3, 4)
    assert not compare(exact, 3, 3.0)
    assert compare(exact, float("nan"), float("nan"))
    with pytest.raises(ValueError, match="nearest: bitwise"):
        compare(Contract("bit_wise"), x, x)


def test_packed_fp4_compares_bytes_and_refuses_arithmetic():
    a = torch.tensor([0x12, 0x34], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    b = torch.tensor([0x12, 0x35], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert bitwise(a, a.clone()) and not bitwise(a, b)
    with pytest.raises(TypeError, match="unpacked"):
        close(a, b, 1.0)
