"""The streaming algorithm: its results, its work against the bound, and the order it needs."""

from __future__ import annotations

import numpy as np
import pytest

from topk.radix_select import oracle, study, visit
from topk.radix_select.cost import expected_work as bound
from topk.radix_select.streaming import radix_select, ranked, stream


@pytest.mark.parametrize("kind", study.ROWS)
@pytest.mark.parametrize("n", (1, 100, 5000, 70001))
def test_selects_what_the_oracle_selects(seed: int, kind: str, n: int) -> None:
    row = study.ROWS[kind](n, np.random.default_rng(seed))
    for block, slack, topk in ((512, 256, 100), (4096, 4096, 1024), (64, 1, 7)):
        blocks = -(-n // block)
        order = visit.order(blocks, visit.table(1 << max(blocks - 1, 0).bit_length(), seed))
        got = stream(row, topk, order, block, slack)
        _, want = oracle.oracle(row[None], topk, True)
        assert got.indices.tolist() == want[0, : min(topk, n)].tolist()


@pytest.mark.parametrize("kind", study.ROWS)
def test_work_stays_below_the_bound(seed: int, kind: str) -> None:
    for n in study.LENGTHS:
        found = study.measure(kind, n, seed, draws=3)
        assert found["work"] <= found["bound"], found


def test_an_order_seeded_by_the_data_does_not() -> None:
    found = [study.measure_seeded(n) for n in (1 << 18, 1 << 20)]
    for one in found:
        assert one["work"] > 2 * one["bound"], one
        # It looks at every element, and at topk more for each compaction: linear, not logarithmic.
        assert one["work"] > one["row_len"]


def test_the_order_is_a_permutation_and_ignores_the_data() -> None:
    draws = visit.table(64)
    for blocks in (1, 2, 3, 31, 32, 33, 64):
        assert sorted(visit.order(blocks, draws)) == list(range(blocks))
    assert not np.array_equal(visit.table(64), visit.table(64)), "drawn afresh"


def test_all_orders_are_equally_likely(seed: int) -> None:
    """Entries left out of a longer permutation leave a uniform one: chi-square over 3! orders."""
    rng = np.random.default_rng(seed)
    count: dict[tuple[int, ...], int] = {}
    for _ in range(3000):
        key = tuple(visit.order(3, visit.table(4, int(rng.integers(1 << 60)))).tolist())
        count[key] = count.get(key, 0) + 1
    assert len(count) == 6
    statistic = sum((n - 500) ** 2 / 500 for n in count.values())
    assert statistic < 30, statistic  # p < 2e-5 for 5 degrees of freedom


def test_radix_select_of_distinct_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(np.unique(rng.integers(0, 1 << 62, 999)).astype(np.uint64))
    for topk in (1, 2, 500, 998, 999, 2000):
        want = np.sort(numbers)[::-1][:topk]
        assert np.array_equal(np.sort(radix_select(numbers, topk))[::-1], want)


def test_numbers_order_as_the_policy_does() -> None:
    row = np.array([np.nan, np.inf, 1, 0.0, -0.0, -1, -np.inf, -np.nan], np.float32)
    order = np.argsort(ranked(row))[::-1].tolist()
    assert order == [0, 7, 1, 2, 3, 4, 5, 6]


def test_the_bound_grows_with_the_logarithm() -> None:
    assert bound(1 << 22, 1024, 4096, 4096) < 3 * bound(1 << 16, 1024, 4096, 4096)
