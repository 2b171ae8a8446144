"""The goldens cover the instruction table, and the table covers what TileLang can print."""

from __future__ import annotations

import json

import pytest

from ascendkit.emulator import emittable
from ascendkit.emulator.instructions import symbols, table
from tests.emulator.golden.coverage import REPORT, goldens, measure, report
from tests.emulator.harness import counts

pytestmark = pytest.mark.emu
# Counters that are no instructions: the begin and end of functions, a step of ::vmula.
INTERNAL = {"simd_vf", "simd_vf.end", "asc_vf_call.end", "asc_mula"}


def test_every_instruction_has_a_golden_and_every_golden_an_instruction() -> None:
    assert set(goldens()) == set(table())


def test_everything_tilelang_can_print_is_in_the_table() -> None:
    assert emittable.all_names() <= symbols()


def test_every_golden_executes_its_instruction_and_the_report_says_so() -> None:
    rows = measure()
    idle = [r.name for r in rows if r.executed is False]
    assert not idle, f"not executed by their own goldens: {idle}"
    assert all(r.right for r in rows)
    assert not {n for n, count in counts().items() if count} - set(table()) - INTERNAL
    committed = json.loads(REPORT.read_text())
    assert committed == json.loads(report(rows)), (
        "run: python -m tests.emulator.golden.coverage, and commit results/emulator_coverage.json"
    )
