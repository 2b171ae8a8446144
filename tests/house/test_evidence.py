"""Figures in the status come from records alone: the last one counts, a broken one is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascendkit.bench.record import Record
from ascendkit.check.outcome import FAIL, PASS, SKIP, Outcome
from ascendkit.check.tally import Tally, from_json, tallies
from ascendkit.doctor.evidence import last_figures, last_verdicts


def record(p50: float, platform: str = "cuda", ceiling: float | None = 4000.0) -> str:
    return Record(
        op="kit.op",
        case="real",
        platform=platform,
        device="NVIDIA H200",
        params={"n": 1},
        time_us={"p20": p50, "p50": p50, "p80": p50},
        flops=(),
        bytes={"minimum": 1e6, "hbm": 1e6, "l2": 1e6, "onchip": 1e6, "link": 0},
        achieved={"gbs": 1000.0, "tflops": 0.0},
        ceiling={"kind": "copy", "bytes": 1e6, "gbs": ceiling} if ceiling else None,
        bound="hbm",
        commit="0123456789abcdef",
        environment={"python": "3.11"},
        method="graph",
        l2_state="cold",
    ).to_json()


def test_the_last_record_of_a_platform_counts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f"{record(7)}\n{record(9, 'reference', None)}\n")
    (tmp_path / "b.jsonl").write_text(f"{record(5)}\n")
    figures = last_figures(tmp_path)
    assert figures["kit.op", "cuda"] == (
        "5 us p50, 1000 GB/s = 25% of copy (real; NVIDIA H200; 0123456789ab)"
    )
    assert figures["kit.op", "reference"] == "9 us p50 (real; NVIDIA H200; 0123456789ab)"
    assert ("kit.op", "ascend") not in figures


def test_other_lines_are_not_figures(tmp_path: Path) -> None:
    lines = [{"command": "python", "p50_s": 1}, {"op": "kit.op", "est_us_lo": 3}, [1]]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert last_figures(tmp_path) == {}
    assert last_figures(tmp_path / "missing") == {}


@pytest.mark.parametrize("line", ["{", '{"op": "kit.op", "time_us": {"p50": 1}}'])
def test_a_broken_record_names_file_and_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(f"{record(1)}\n{line}\n")
    with pytest.raises(ValueError, match=r"a\.jsonl:2"):
        last_figures(tmp_path)


def outcomes(*statuses: str) -> list[Outcome]:
    return [Outcome("kit.op", "cuda", f"case{i}", s, judge="NumPy") for i, s in enumerate(statuses)]


def test_a_run_leaves_a_verdict_an_op_and_platform(tmp_path: Path) -> None:
    ran = outcomes(PASS, PASS, FAIL, SKIP)
    (one,) = tallies(ran, "core", 7, {"cuda": "NVIDIA H200"}, "0123456789abcdef", "check")
    assert (one.passed, one.failed, one.skipped, one.judge) == (2, 1, 1, "NumPy")
    assert from_json(one.to_json()) == one
    (tmp_path / "a.jsonl").write_text(f"{record(7)}\n{one.to_json()}\n")
    want = "2 of 3, 1 not served (core; NVIDIA H200; 0123456789ab)"
    assert last_verdicts(tmp_path) == {("kit.op", "cuda"): want}
    assert set(last_figures(tmp_path)) == {("kit.op", "cuda")}


@pytest.mark.parametrize("change", [{"passed": -1}, {"passed": True}, {"op": 3}, {"more": 1}])
def test_a_broken_verdict_names_file_and_line(tmp_path: Path, change: dict) -> None:
    good = Tally("kit.op", "cuda", "core", 1, 0, 0, "", 1, "H200", "c", "check").to_json()
    bad = json.dumps(json.loads(good) | change)
    (tmp_path / "a.jsonl").write_text(f"{good}\n{bad}\n")
    with pytest.raises(ValueError, match=r"a\.jsonl:2"):
        last_verdicts(tmp_path)


def test_a_components_own_kinds_of_record_are_read_as_it_says(tmp_path: Path) -> None:
    form = {"op": "kit.op", "platform": "cuda", "where": {"what": "x"}, "text": "{us:.3g} us"}
    lines = [{"record": "own", "what": what, "us": us} for what, us in (("x", 1.2345), ("y", 9))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert last_figures(tmp_path, {"own": [form]}) == {("kit.op", "cuda"): "1.23 us"}
