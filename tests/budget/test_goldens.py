"""Counting goldens, and that missing one is noticed."""

from __future__ import annotations

import json

import pytest

from ascendkit.budget import __main__ as command
from ascendkit.budget import goldens as module
from ascendkit.budget.goldens import goldens, meets


def test_all_goldens_hold():
    found = goldens()
    assert len(found) >= 30
    assert not [g for g in found if not g.ok]


def test_goldens_cover_every_published_count():
    assert {g.id[:3] for g in goldens() if g.published is not None} >= {
        f"g0{i}" for i in range(1, 10)
    }


@pytest.mark.parametrize(
    ("computed", "printed", "ok"),
    [(0.2671, 0.27, True), (0.2649, 0.27, False), (16.13, 16, True), (16.5001, 16, False),
     (249.811, 249.81, True), (249.816, 249.81, False), (890.0, 890, True)],
)  # fmt: skip
def test_printed_digits(computed, printed, ok):
    assert meets(computed, printed) is ok


def test_command_passes_and_reports(capsys):
    assert command.main(["action=goldens"]) == 0
    assert "0 failed" in capsys.readouterr().out.splitlines()[-1]


def test_command_fails_on_a_miss(monkeypatch, capsys):
    monkeypatch.setitem(module.METRICS, "params", lambda m, c: 1.0)
    assert command.main(["action=goldens", "output=json"]) == 1
    got = json.loads(capsys.readouterr().out)
    assert got["failed"] == 1
    assert [r["metric"] for r in got["rows"] if not r["ok"]] == ["params"]


def test_command_fails_on_zero(monkeypatch):
    monkeypatch.setattr(command, "goldens", list)
    assert command.main(["action=goldens"]) == 1
