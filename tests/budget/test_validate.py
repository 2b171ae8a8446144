"""The validation: what counts, what does not, and that it cannot be bent silently."""

from __future__ import annotations

import dataclasses

import pytest

from ascendkit.budget.validate import report, score
from ascendkit.budget.validate.runs import points
from ascendkit.budget.validate.score import Result, rank_test, validate
from ascendkit.data import table


@pytest.fixture(scope="module")
def results():
    return validate()


def test_every_point_is_run_or_says_why_not():
    stock = [p for p in table("validation_points")["points"] if p["role"] in
             ("validation", "calibration", "kernel")]  # fmt: skip
    found = points()
    assert [p.id for p in found] == [p["id"] for p in stock]
    for p in found:
        assert bool(p.reason) != bool(p.run), p.id
        assert not p.run or p.measured > 0, p.id
    runs = table("validation_runs")
    assert set(runs["runs"]) <= {p["id"] for p in stock}
    assert {p.quantity for p in found if p.run} <= set(runs["quantities"])


def test_calibration_points_never_count(results):
    by_id = {r.point.id: r for r in results}
    assert by_id["a3_v4f_950dt_16_8k"].point.role == "calibration"
    assert not by_id["a3_v4f_950dt_16_8k"].claimed
    assert all(
        "a3_v4f_950dt_16_8k" not in (a.point.id, b.point.id) for a, b in score.pairs(results)
    )


def test_claims_follow_the_marks(results):
    for r in results:
        if r.predicted is not None:
            assert sum(v for _, v in r.shares) == pytest.approx(1)
            assert r.low <= r.predicted <= r.high
            far = sum(v for k, v in r.shares if k in "TA")
            usable = not r.missing and r.point.role != "calibration"
            assert r.claimed == (far <= 0.2 + 1e-9 and usable)
    assert any(r.claimed for r in results) and any(r.predicted and not r.claimed for r in results)


def test_a_score_needs_enough_claimed_points(results):
    text = report.as_text(results)
    assert "Mean over" in text
    few = [r for r in results if not r.claimed or r.point.group == "V3 training H800"]
    assert "No score" in report.as_text(few)


def test_misses_come_first(results):
    text = report.as_text(results)
    assert text.index("off by more than 10 %") < text.index("## Claimed, within 10 %")
    assert score.digest() in text


def test_scores_on_known_errors():
    p = next(p for p in points() if p.run)
    made = [
        Result(dataclasses.replace(p, measured=100.0), predicted=v, shares=(("P", 1.0),))
        for v in (95.0, 115.0, 150.0)
    ]
    got = score.score(made)
    assert (got.n, got.within_10, got.within_20) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert got.median == pytest.approx(0.15)


def test_rank_test_sees_a_swap():
    p = next(p for p in points() if p.run and p.role == "validation")
    pair = [
        Result(dataclasses.replace(p, measured=m), predicted=v) for m, v in ((1.0, 2.0), (2.0, 1.0))
    ]
    assert rank_test(pair) == (0, 1)


def test_the_points_file_is_hashed(monkeypatch, tmp_path):
    before = score.digest()
    for name in score.FILES:
        text = (score.configs() / "data" / name).read_text()
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_text(text.replace("19.926", "19.927"))
    monkeypatch.setattr(score, "configs", lambda: tmp_path)
    assert score.digest() != before


def test_a_fused_kernel_is_not_what_its_parts_measured(results):
    fused = [r for r in results if r.point.id.startswith(("k1_megamoe", "k2_megamoe"))]
    assert fused and not any(r.claimed for r in fused)


def test_no_row_of_a_points_own_source_predicts_it():
    """Groups whose source also published kernels leave those rows out."""
    runs = table("validation_runs")["runs"]
    for key, run in runs.items():
        if run["group"] in ("V4 950PR", "FlashMLA 950") and "not" not in run:
            assert run["without"], key


def test_no_measurement_counts_twice():
    found = [(p.platform, p.metric, p.measured, str(p.run)) for p in points() if p.run]
    assert len(found) == len(set(found))
