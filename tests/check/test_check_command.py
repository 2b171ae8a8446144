"""The command: what runs, what is printed, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit import bench, registry
from ascendkit.check import tally
from ascendkit.check.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def as_json(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("columns", [80, 160])
def test_a_good_op_exits_zero_and_says_how_to_repeat(toy, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    toy("good")
    assert main(["seed=5", "platform=reference"]) == 0
    out = capsys.readouterr().out
    assert "the reference of toy.good is judged by: NumPy product" in out
    assert "bitwise 0, 0" in out and "seed=5" in out
    assert "3 passed, 0 failed, 0 skipped, 1 measured" in out
    assert "toy.good on reference" in out and "host time, no device figure" in out


def test_json_lines_are_records_and_a_summary(toy, capsys):
    toy("good")
    assert main(["seed=5", "platform=reference", "output=json", "level=full"]) == 0
    *lines, summary = as_json(capsys)
    assert [x["record"] for x in lines] == ["check"] * 6 + ["bench"]
    cases = ["plain", "empty", "large", "bad_k", "nan", "(torch.library)"]
    assert [x["case"] for x in lines[:6]] == cases
    assert lines[0]["judge"] == "NumPy product" and lines[0]["seed"] == 5
    assert summary["cases"] == {"pass": 6} and summary["exit"] == 0
    record = {k: v for k, v in lines[-1].items() if k != "record"}
    assert bench.from_json(json.dumps(record)).method.startswith("host perf_counter")


def test_equal_seeds_draw_equal_inputs(toy, capsys):
    toy("wrong", reference=toy.files["reference"].replace("x * k", "x * k + 1"))
    seen = []
    for seed in (7, 7, 8):
        assert main([f"seed={seed}", "platform=reference", "output=json"]) == 1
        seen.append(as_json(capsys)[0]["got"])
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"reference": "def reference(x, k):\n    return x * k + 1\n"}, "33 of 33 differ"),
        ({"reference": "import nowhere\n"}, "No module named 'nowhere'"),
        ({"cases": "1 / 0\n"}, "ZeroDivisionError"),
        ({"cases": "CONTRACT = None\n"}, "(case list)"),
        ({"oracle": None}, "nothing judges the reference"),
        ({"cost": None}, "cost"),
        ({"cost": "def cost(n, hidden):\n    pass\n"}, "also hidden"),
    ],
)
def test_anything_broken_exits_one_and_says_where(toy, capsys, files, told):
    toy("broken", **files)
    toy("good")
    assert main(["platform=reference"]) == 1
    out = capsys.readouterr().out
    assert told in out and "toy.broken" in out and "toy.good" in out


@pytest.mark.parametrize(
    ("text", "other", "told"),
    [
        ('"large"', '"plain"', "got 'plain', wanted a name of its own"),
        ('level="full"', 'level="ful"', "nearest: full"),
        ('level="full"', "ranks=0", "wanted at least 1"),
    ],
)
def test_case_lists_that_would_run_less_than_they_seem_are_refused(toy, capsys, text, other, told):
    toy("unsound", cases=toy.files["cases"].replace(text, other))
    assert main(["platform=reference"]) == 1
    assert told in capsys.readouterr().out


def test_an_op_that_exits_or_prints_does_not_speak_for_the_command(toy, capsys):
    toy("quits", reference="def reference(x, k):\n    raise SystemExit(0)\n")
    assert main(["platform=reference"]) == 1
    assert "SystemExit: 0" in capsys.readouterr().out
    toy("chatty", reference="def reference(x, k):\n    print('hello')\n    return x * k\n")
    assert main(["platform=reference", "op=chatty", "output=json"]) == 0
    assert all(x["record"] for x in as_json(capsys))


@pytest.mark.parametrize(
    "files",
    [
        {"cases": None},
        {"reference": None},
        {"cases": "from ascendkit import Contract\nCONTRACT = Contract('ulp')\ncases = tuple\n"},
    ],
)
@pytest.mark.parametrize("output", ["table", "json"])
def test_no_case_is_a_failure(toy, capsys, files, output):
    toy("hollow", **files)
    assert main([f"output={output}"]) == 1
    out = capsys.readouterr().out
    assert "toy.hollow" in out
    assert output == "json" or "no case ran" in out


def test_only_skipped_cases_are_a_failure_too(toy, capsys):
    never = (
        "from ascendkit import Support\ndef supports(case):\n    return Support(False, 'never')\n"
    )
    cases = toy.files["cases"].replace(', error="ValueError"', ', level="full"')
    toy("shy", ascend=never, cases=cases)
    assert main(["platform=emulator"]) == 1
    out = capsys.readouterr().out
    assert "skipped 1 cases of toy.shy on emulator: never" in out and "no case ran" in out


def test_the_same_cases_run_on_every_platform(toy, capsys):
    toy("good")
    main(["output=json", "seed=1"])
    *lines, summary = as_json(capsys)
    assert {x["platform"] for x in lines if x["record"] == "check"} == {"reference", "emulator"}
    assert {x["platform"] for x in lines if x["record"] == "bench"} == {"reference"}
    assert set(summary["cannot_run"]) >= {"ascend"}


def test_loop_selects(toy, capsys):
    toy("good")
    assert main(["loop=bandwidth", "platform=reference", "output=json"]) == 0
    assert [x["record"] for x in as_json(capsys)] == ["bench", "summary"]
    assert main(["loop=bandwidth", "platform=emulator"]) == 1
    assert "no case ran" in capsys.readouterr().out


def test_records_go_to_a_new_file_only_when_asked(toy, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    toy("good")
    assert main(["platform=reference"]) == 0
    assert not (tmp_path / "results").exists()
    assert main(["platform=reference", "record=run-1.0"]) == 0
    path = tmp_path / "results" / "run-1.0.jsonl"
    (record,) = bench.load(path)
    (verdict,) = filter(None, map(tally.from_json, path.read_text().splitlines()))
    assert (verdict.op, verdict.passed, verdict.failed) == ("toy.good", 3, 0)
    assert verdict.command.endswith("platform=reference record=run-1.0")
    assert record.op == "toy.good" and record.ceiling is None and record.bound is None
    with pytest.raises(ValueError, match=r"exists; nearest legal: run-1\.0-2"):
        main(["platform=reference", "record=run-1.0"])
    with pytest.raises(ValueError, match="nearest legal: etc-passwd"):
        main(["record=/etc/passwd"])


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("op=toy.god", "nearest: toy.good"),
        ("component=top", "nearest: toy"),
        ("platform=cud", "nearest: cuda"),
        ("level=ful", "nearest: full"),
        ("seed=x1", "wanted an integer"),
        ("seed=1.5", "wanted an integer"),
        ("seed=true", "wanted an integer"),
        ("output=xml", "wanted one of json, table"),
        ("lvel=core", "nearest: level"),
        ("op=[a,b]", "wanted one value"),
    ],
)
def test_usage_errors_name_the_nearest(toy, argument, told):
    toy("good")
    with pytest.raises(ValueError, match=told):
        main([argument])


def test_an_op_of_another_component_is_a_usage_error(toy, monkeypatch):
    toy("good")
    both = {"toy": registry.components()["toy"], "other": registry.components()["toy"]}
    monkeypatch.setattr(registry, "components", lambda: both)
    with pytest.raises(ValueError, match="op of component other"):
        main(["component=other", "op=good"])


def shell(*argv, **kwargs):
    command = [sys.executable, "-m", "ascendkit.check", *argv]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, **kwargs)


def test_a_platform_that_cannot_run_here_gives_its_reason_and_exits_two():
    done = shell("platform=ascend")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: platform 'ascend' cannot run here: ")
    assert done.stderr.count("\n") == 1


def test_help_lists_keys_and_choices():
    done = shell("--help")
    assert done.returncode == 0 and done.stderr == ""
    for text in ("level=smoke", "smoke|core|full", "platform=auto", "seed=null", "op=topk_gate"):
        assert text in done.stdout


def test_a_reader_that_leaves_ends_it_quietly():
    # More than a pipe holds, into a reader that leaves at once.
    code = (
        "from ascendkit.cli import run\n"
        "def main(argv):\n    for i in range(20000):\n        print('line', i)\n    return 0\n"
        "run(main)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        f"{sys.executable} -c \"{code}\" | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, env=env,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (141, "line 0\n", "")
