"""Every code has an input that gives it: its example (test_examples.py), or one of these."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

pytest.importorskip("tilelang")

import torch
from tilelang.ascend import language as T

from ascendkit.emulator import EmulatorError, toolchain
from ascendkit.emulator.findings import check
from ascendkit.emulator.findings.codes import codes
from ascendkit.emulator.findings.lint import lint
from ascendkit.emulator.lowered import ascend_target
from tests.emulator.test_races import GOOD, IN, LOAD, OUT, STORE, TWICE, body

pytestmark = pytest.mark.emu
ELSEWHERE = {
    "AK-ADVICE-001": "test_mutation.py",
    "AK-BOUNDS-005": "test_user_problems_memory.py",
    "AK-BOUNDS-006": "findings/test_memory.py",
    "AK-COVERAGE-001": "test_rare_findings.py",
    "AK-COVERAGE-002": "findings/test_memory.py",
}
"""Asserted in these files of tests/emulator."""


def few_pairs():
    """Two blocks write one tile, and no pair of accesses is compared."""
    function = toolchain.symbol("ak_most_pairs")
    function.argtypes, function.restype = [ctypes.c_uint64], ctypes.c_uint64
    most = function(1)
    try:
        text = body(IN, LOAD, TWICE, STORE, OUT, at="x")
        return check(text, torch.zeros(64), grid=4)
    finally:
        function(most)


def without_tilelang(monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmulatorError) as error:
        toolchain.template_root.__wrapped__()
    return {error.value.code}


def refused_by_a_pass():
    """Vector functions have no float64."""

    @T.prim_func
    def main(x: T.Tensor((64,), "float64"), y: T.Tensor((64,), "float64")):
        with T.Kernel(1):
            tile = T.alloc_shared((64,), "float64")
            T.copy(x, tile)
            with T.SimdVF():
                for i in T.Parallel(64):
                    tile[i] = tile[i] + tile[i]
            T.copy(tile, y)

    with ascend_target():
        return {f.code for f in lint(main)}


INPUTS = {
    "AK-LINT-008": lambda _: refused_by_a_pass(),
    "AK-RACE-010": lambda _: {f.code for f in few_pairs().findings},
    "AK-SETUP-001": without_tilelang,
}


@pytest.mark.parametrize("code", INPUTS)
def test_codes_without_an_example(code, monkeypatch):
    assert code in INPUTS[code](monkeypatch)


def test_no_code_is_left():
    here = Path(__file__).parents[1]
    bare = {c.code for c in codes().values() if c.example.kind == "none"}
    assert bare == {*INPUTS, *ELSEWHERE}
    for code, name in ELSEWHERE.items():
        assert f'"{code}"' in (here / name).read_text(encoding="utf-8"), code


def test_what_was_not_compared_is_said_with_its_place():
    result = few_pairs()
    (one,) = [f for f in result.findings if f.code == "AK-RACE-010"]
    assert one.severity == "warning" and "cannot judge" in one.detail
    assert (one.buffer, one.space) == ("x", "GM") and one.here.line and one.other
    assert 0 <= one.begin < one.end <= 256
    assert {f.code for f in check(GOOD, torch.zeros(128), grid=2).findings} == set()
