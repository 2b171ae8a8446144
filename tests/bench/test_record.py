"""Records: strict both ways, and a file of them is never half a line."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendkit.bench import Record, append, from_json, load

GOOD = Record(
    op="toy.scale",
    case="large",
    platform="cuda",
    device="NVIDIA H200",
    params={"n": 4096, "dtype": "bf16"},
    time_us={"p20": 1.0, "p50": 2.0, "p80": 2.5},
    flops=({"unit": "cube", "dtype": "bf16", "flop": 8e12},),
    bytes={"minimum": 4e6, "hbm": 4e6, "l2": 8e6, "onchip": 4e6, "link": 0},
    achieved={"gbs": 2000.0, "tflops": 4.0},
    ceiling={"kind": "copy", "bytes": 4e6, "gbs": 4000.0},
    bound="hbm",
    commit="0123456789ab",
    environment={"torch": "2.11.0"},
    method="cuda graph of 48 calls",
    l2_state="cold",
)
LINE = GOOD.to_json()


def test_a_record_survives_its_line():
    assert "\n" not in LINE and from_json(LINE) == GOOD
    assert GOOD.of_ceiling == 0.5
    host = dataclasses.replace(GOOD, platform="reference", ceiling=None, bound=None)
    assert from_json(host.to_json()) == host and host.of_ceiling is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"op": ""}, "op"),
        ({"op": 3}, "op"),
        ({"case": "a\nb"}, "one line of text"),
        ({"platform": "emulator"}, "wanted one of"),
        ({"l2_state": "hot"}, "wanted one of"),
        ({"bound": "memory"}, "wanted one of"),
        ({"time_us": {"p20": 1, "p50": 2}}, "p80"),
        ({"time_us": {"p20": 3, "p50": 2, "p80": 4}}, "p20 <= p50"),
        ({"time_us": {"p20": 0, "p50": 2, "p80": 4}}, "0 < p20"),
        ({"time_us": {"p20": 1, "p50": 2, "p80": "4"}}, "finite number"),
        ({"time_us": {"p20": 1, "p50": 2, "p80": 3, "p99": 4}}, "p20, p50, p80"),
        ({"bytes": {**GOOD.bytes, "hbm": -1}}, "not negative"),
        ({"bytes": {**GOOD.bytes, "hbm": True}}, "finite number"),
        ({"achieved": {"gbs": float("inf"), "tflops": 0}}, "finite"),
        ({"achieved": {"gbs": 1}}, "tflops"),
        ({"flops": [{"unit": "cube", "flop": 1}]}, "dtype"),
        ({"flops": [{"unit": "tensor", "dtype": "bf16", "flop": 1}]}, "wanted one of"),
        ({"flops": {"unit": "cube"}}, "list"),
        ({"ceiling": {"kind": "copy", "gbs": 1}}, "bytes"),
        ({"ceiling": {"kind": "peak", "bytes": 1, "gbs": 1}}, "wanted one of"),
        ({"params": [1]}, "mapping"),
        ({"environment": None}, "mapping"),
        ({"extra": 1}, "record field"),
        ({"method": "   "}, "method"),
    ],
)
def test_illegal_records_are_refused(change, told):
    raw = {**json.loads(LINE), **change}
    with pytest.raises(ValueError, match=told):
        from_json(json.dumps(raw))


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Record)])
def test_every_field_is_wanted_once(name):
    raw = json.loads(LINE)
    value = raw.pop(name)
    with pytest.raises(ValueError, match=f"also {name}"):
        from_json(json.dumps(raw))
    twice = LINE[:-1] + f", {json.dumps(name)}: {json.dumps(value)}" + "}"
    with pytest.raises(ValueError, match="each key once"):
        from_json(twice)


@given(st.text() | st.integers(0, len(LINE) - 1).map(lambda n: LINE[:n]))
def test_any_text_is_a_record_or_a_value_error(text):
    with pytest.raises(ValueError, match="record"):
        from_json(text)


def test_parameters_that_json_cannot_hold_are_refused():
    for params in ({"n": {1, 2}}, {"n": float("nan")}):
        with pytest.raises(ValueError, match="record params"):
            dataclasses.replace(GOOD, params=params)


def test_appends_of_many_processes_stay_whole_lines(tmp_path):
    path = tmp_path / "new" / "run.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from ascendkit.bench import append, from_json\n"
        "record = from_json(sys.argv[2])\n"
        "for _ in range(50):\n    append(Path(sys.argv[1]), record)\n"
    )
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code, str(path), LINE]
    running = [subprocess.Popen(command, cwd=root) for _ in range(4)]
    assert [p.wait(60) for p in running] == [0] * 4
    assert load(path) == [GOOD] * 200


def test_a_short_write_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    append(path, GOOD)
    before = path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError, match="whole record"):
        append(path, GOOD)
    assert path.read_bytes() == before


def test_the_loader_names_file_and_line(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(LINE + "\n" + LINE[:-5] + "\n")
    with pytest.raises(ValueError, match=r"run\.jsonl:2: .*malformed"):
        load(path)
