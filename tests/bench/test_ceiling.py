"""Ceilings on the same bytes, and what a record makes of them."""

from __future__ import annotations

import pytest

from ascendkit.bench import Ceilings, num_sets
from ascendkit.bench import case as measuring
from ascendkit.bench import ceiling as module
from ascendkit.bench.environment import commit, known_device, l2_state
from ascendkit.bench.timing import Timing
from ascendkit.cost import Cost


def test_sets_fill_a_gibibyte_within_bounds():
    assert num_sets(0) == num_sets(1) == 48 == num_sets(1 << 20)
    assert num_sets(1 << 28) == 4 and num_sets((1 << 28) - 1) == 5
    assert num_sets(1 << 31) == num_sets(1e15) == 2


@pytest.fixture
def clock(monkeypatch):
    """Times by the number of bytes of the tensors a call touches: a read costs half a copy."""
    seen = []

    def bench(calls, device):
        before = calls[0]()
        seen.append((len(calls), before.numel()))
        us = {0: 1.0}.get(before.dim(), 2.0)
        return Timing(us, us, us, 7, len(calls), "fake")

    monkeypatch.setattr(module, "do_bench", bench)
    monkeypatch.setattr(module, "SET_BYTES", 1 << 16)
    return seen


def test_the_fastest_candidate_on_the_same_bytes_is_the_ceiling(clock):
    ceilings = Ceilings("cpu")
    copy = ceilings.best(read=4000, write=4000)
    assert (copy.kind, copy.bytes, copy.us) == ("copy", 8000, 2.0)
    assert copy.gbs == pytest.approx(4.0) and clock == [(9, 1000)]
    read = ceilings.best(read=7000, write=1000)
    assert (read.kind, read.bytes, read.us) == ("read", 8000, 1.0)
    assert len(clock) == 2, "the copy of that size was measured already"
    assert ceilings.best(read=0, write=8000).kind == "copy", "equal times keep the copy"
    assert len(clock) == 3


def test_odd_and_tiny_sizes_have_a_ceiling(clock):
    for read, write in ((1, 0), (3, 2), (7, 1)):
        got = Ceilings("cpu").best(read, write)
        assert got.bytes > 0 and got.gbs > 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA B200", "b200"),
        ("Some Unknown GPU", None),
        ("", None),
    ],
)
def test_runtime_names_find_their_row(name, key):
    row = known_device(name)
    assert (row and row.key) == key


def test_the_bound_is_the_limit_that_takes_longest(monkeypatch):
    ceilings = Ceilings("cuda")
    ceilings._floor = 1.0
    monkeypatch.setattr(measuring, "device_name", lambda device: "NVIDIA H200")
    names = {"n": 1e9}
    memory = module.Ceiling("copy", 8e9, 2000.0, "fake")
    tiny = module.Ceiling("copy", 8.0, 1.2, "fake")

    def bound(cost, ceiling, state="cold"):
        return measuring._bound(cost, ceiling, ceilings, state)

    assert bound(Cost(names), memory) == "hbm"
    assert bound(Cost(names), memory, "warm") == "l2"
    assert bound(Cost(names), tiny) == "launch"
    assert bound(Cost(names, launches=5000), memory) == "launch"
    heavy = Cost(names).flop("cube", "bf16", "product", "n*n")
    assert bound(heavy, memory) == "cube"
    monkeypatch.setattr(measuring, "device_name", lambda device: "unheard of")
    assert bound(heavy, memory) == "hbm", "no published peak, no claim"


def test_l2_state_needs_a_known_cache(monkeypatch):
    from ascendkit.bench import environment

    assert l2_state("cpu", 1e9) == "unknown"
    monkeypatch.setattr(environment, "l2_bytes", lambda device: 60e6)
    assert [l2_state("cuda", b) for b in (60e6, 61e6, 240e6)] == ["warm", "mixed", "cold"]


def test_the_commit_can_be_told_from_outside(monkeypatch):
    commit.cache_clear()
    monkeypatch.setenv("ASCENDKIT_COMMIT", "abc")
    assert commit() == "abc"
    commit.cache_clear()
