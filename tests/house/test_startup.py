"""The start-up benchmark measures fresh processes and tells when a command failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascendkit.doctor import downloads, startup


def test_a_record_holds_what_was_run_and_where() -> None:
    record = startup.measure(["-c", "import time; time.sleep(0.05)"], repeats=3)
    assert record.command == "python -c import time; time.sleep(0.05)"
    assert 0.05 < record.min_s <= record.p50_s <= record.max_s
    assert 0 < record.cpu_p50_s <= record.max_s + 0.02
    assert record.exit_code == 0 and record.repeats == 3
    assert record.machine and record.cores >= 1 and record.commit


def test_a_failing_command_fails_the_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(
        startup, "commands", lambda: [["-c", "pass"], ["-c", "raise SystemExit(3)"]]
    )
    monkeypatch.setattr(startup, "REPEATS", 1)
    path = tmp_path / "deep" / "startup.jsonl"
    assert startup.main(path) == 1
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["exit_code"] for row in rows] == [0, 3]


def test_every_import_and_small_command_is_timed() -> None:
    timed = {" ".join(c) for c in startup.commands()}
    assert {"-c import ascendkit", "-m ascendkit doctor", "-c import tilekernels"} <= timed


def test_the_announcement_adds_up_and_is_honest_about_gaps(tmp_path: Path, monkeypatch) -> None:
    wheel = tmp_path / "a b.whl"
    wheel.write_bytes(b"x" * 2_000_000)

    def item(name: str, url: str) -> dict[str, object]:
        return {"metadata": {"name": name, "version": "1"}, "download_info": {"url": url}}

    items = [item("here", wheel.as_uri()), item("gone", (tmp_path / "gone.whl").as_uri())]
    monkeypatch.setattr(downloads, "plan", lambda _: items)
    text = downloads.announcement(["x"])
    assert (
        text.splitlines()[0]
        == "to download: 2 packages, 2.0 MB and 1 of unknown size; the largest:"
    )
    assert "2.0 MB  here 1" in text and "unknown  gone 1" in text


@pytest.mark.parametrize("items, said", [([], ""), (None, "could not say")])
def test_nothing_to_fetch_says_nothing_and_no_plan_says_so(monkeypatch, items, said) -> None:
    monkeypatch.setattr(downloads, "plan", lambda _: items)
    text = downloads.announcement(["x"])
    assert said in text and bool(text) == bool(said)


def test_a_large_torch_names_the_way_out(monkeypatch) -> None:
    one = {"metadata": {"name": "torch", "version": "2"}, "download_info": {"url": "file:///x"}}
    monkeypatch.setattr(downloads, "plan", lambda _: [one])
    monkeypatch.setattr(downloads, "size", lambda _: 3_000_000_000)
    assert "TORCH_INDEX=" in downloads.announcement(["torch"])
