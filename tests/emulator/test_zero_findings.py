"""The tally of what the judges say of right kernels."""

from __future__ import annotations

import json

import pytest

from ascendkit import registry
from ascendkit.emulator import zero_findings

pytestmark = pytest.mark.emu


def test_a_record_counts_cases_and_launches(capsys: pytest.CaptureFixture[str]) -> None:
    assert zero_findings.main(["smoke", "tilekernels.mask_indices_by_tp"]) == 0
    (one,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    cases = list(registry.ops()[one["op"]].cases("smoke"))
    assert sum(one["cases"].values()) == len(cases) and set(one["cases"]) <= {"pass", "skip"}
    assert one["launches"] > 0 and one["findings"] == {} and one["errors"] == 0
    assert one["command"].endswith("zero_findings smoke tilekernels.mask_indices_by_tp")


def test_a_failing_case_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"op": "x", "cases": {"fail": 1}, "errors": 0}
    monkeypatch.setattr(zero_findings, "record", lambda *a, **k: dict(bad))
    assert zero_findings.main(["smoke", "tilekernels.mask_indices_by_tp"]) == 1


def test_the_peers_tests_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_two.py"
    file.write_text("def test_one(): pass\ndef test_two(): assert False\n")
    monkeypatch.setattr(zero_findings, "PEER_TESTS", str(file))
    assert zero_findings.main(["peer"]) == 1
    one = json.loads(capsys.readouterr().out)
    assert one["cases"] == {"pass": 1, "fail": 1} and one["package"].startswith("tile-kernels ")
