"""``python -m ep_comm``: every command, its records, and its refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ep_comm.__main__ import main

ROOT = Path(__file__).parents[2]


def call(*args: str) -> str:
    got = subprocess.run(
        [sys.executable, "-m", "ep_comm", *args], capture_output=True, text=True, cwd=ROOT
    )
    assert got.returncode == 0, got.stderr + got.stdout
    return got.stdout


def records(*args: str) -> list[dict]:
    return [json.loads(line) for line in call(*args, "output=json").splitlines()]


def test_size():
    got = records("size", "scaleout=2")
    assert got[-1]["num_bytes"] == 1_218_445_312
    assert all(r["bytes"] == r["records"] * r["record_bytes"] for r in got[:-1])
    assert "581 x 2 MiB" in call("size", "scaleout=2")


def test_model():
    got = records("model")
    assert {r["machine"] for r in got} > {"ascend_950dt", "h800_v1", "sm90_cx7", "sm100_nvlink"}
    assert all(set(r) >= {"published", "model", "error", "left_out_error"} for r in got)
    assert "EP16, 32, 64 are predicted" in call("model", "machine=ascend_950dt")
    fp8 = records("model", "action=fp8", "machine=ascend_950dt", "ranks=32")
    assert fp8[0]["saved_us"] > 0
    assert {r["choice"] for r in records("model", "action=carrier")} == {"ubmem", "urma"}
    shaped = records("model", "action=predict", "gate=zipf:0.5", "seed=1", "machine=sm90_cx7")
    assert shaped[0]["skew"] > 1


def test_the_page_is_whole_and_alone(tmp_path, capsys):
    file = tmp_path / "m.html"
    assert main(["model", "output=html", f"file={file}"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"wrote {file} ({file.stat().st_size:,} bytes)\n")
    text = file.read_text()
    assert text.startswith("<!doctype html>") and text.count("<svg") == text.count("</svg>") == 12
    for word in ("http", "@import", "url(", "src=", "nan", str(tmp_path)):
        assert word not in text
    # A figure of the table, published and model, and a circle for each of them.
    assert "EP64: published 325.0, model " in text
    places = [tuple(map(float, p)) for p in re.findall(r'cx="([-.0-9]+)" cy="([-.0-9]+)"', text)]
    assert len(places) == 2 * (text.count("<tr>") - 1)
    assert all(56 <= x <= 624 and 14 <= y <= 200 for x, y in places)


def test_simulate():
    got = records("simulate", "ranks=[64,128]", "sample=4")
    assert [(r["ranks"], r["mode"]) for r in got] == [
        (64, "direct"), (64, "hybrid"), (128, "direct"), (128, "hybrid")
    ]  # fmt: skip


def test_bench_and_preflight_on_threads():
    got = records("bench", "backend=threads", "tokens=32", "hidden=256", "experts=16", "repeats=2")
    assert {r["what"] for r in got} >= {"dispatch", "combine", "memcpy", "copies"}
    assert all(r["us"] > 0 and r["link"].startswith("none") for r in got)
    found = records("preflight", "backend=threads", "ranks=2")
    assert any(r["what"].endswith("dispatch and combine") and r["state"] == "ok" for r in found)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("sise",), "nearest: size"),
        (("size", "topk=33"), "topk: got 33, wanted 0 to 32"),
        (("size", "tokens=many"), "tokens: got 'many', wanted an integer"),
        (("model", "machine=h80"), "nearest: h800"),
        (("bench", "backend=nccl"), "torchrun"),
        (("bench", "backend=mip"), "nearest: mpi"),
        (("bench", "repeats=0"), "repeats: got 0, wanted 1 to"),
        (("bench", "ranks=3"), "wanted a multiple of ranks 3; nearest legal: 255"),
        (("bench", "hidden=65"), "wanted a multiple of 8; nearest legal: 64"),
        (("bench", "fp8=true", "hidden=72"), "wanted a multiple of 16; nearest legal: 80"),
        (("bench", "ranks=4", "scaleup=3"), "wanted a divisor of ranks 4, or 0; nearest legal: 2"),
        (("bench", "record=../x.jsonl"), "nearest legal: x.jsonl"),
        (("multi", "topk=[8,33]"), "topk: got 33, wanted 1 to 32"),
        (("preflight", "timeout=0"), "seconds above 0"),
        (("preflight", "ranks=0"), "ranks: got 0, wanted 1 to 1024"),
        (("size", "hidden=7"), "wanted a multiple of 8; nearest legal: 8"),
        (("size", "scaleout=256"), "at most 1024 ranks; nearest legal: 128"),
        (("simulate", "ranks=abc"), "ranks: got str, wanted an int"),
        (("simulate", "ranks=63"), "wanted a multiple of scaleup 8; nearest legal: 64"),
        (("simulate", "sample=0"), "sample: got 0, wanted 1"),
        (("model", "action=fp8", "output=html"), "wanted table or json beside action=fp8"),
        (("model", "file=x"), "file: got 'x', wanted none unless output=html"),
        (("model", "output=html", "file=/nowhere/x"), "file: cannot write '/nowhere/x'"),
        (("model", "machine=tpu"), "wanted one of all, ascend_950dt"),
        (("model", "action=carrier", "cores=[0]"), "cores: got 0, wanted 1"),
        (("model", "action=predict", "ranks=7"), "a divisor of experts 256; nearest legal: 8"),
        (("model", "action=predict", "machine=sm100_nvlink"), "tell of one node alone"),
        (
            ("model", "action=fp8", "machine=sm90_cx7", "ranks=8"),
            "of the network alone; nearest legal: 16",
        ),
        (("model", "action=fp8", "machine=h800_ll"), "nearest legal: h800_v1"),
    ],
)
def test_refusals_say_what_is_legal(args, text, monkeypatch):
    """In this process: starting one costs more than the answer."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    if args[0] == "multi":
        monkeypatch.setenv("RANK", "0")
    with pytest.raises((ValueError, TypeError)) as caught:
        main(list(args))
    assert text in str(caught.value)


def test_a_refusal_is_one_line():
    got = subprocess.run(
        [sys.executable, "-m", "ep_comm", "size", "topk=33"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert got.returncode == 2
    assert got.stderr == "error: topk: got 33, wanted 0 to 32; nearest legal: 32\n"


def test_machines_that_cannot_answer_are_named():
    got = subprocess.run(
        [sys.executable, "-m", "ep_comm", "model", "action=predict", "output=json"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    told = {json.loads(line)["machine"] for line in got.stdout.splitlines()}
    assert told == {"ascend_950dt", "sm90_cx7", "h800_v1", "h800_ll"}
    assert "left out: sm100_nvlink: ranks: got 64, wanted at most 8" in got.stderr


def test_an_error_of_a_rank_is_one_line(monkeypatch, capsys):
    from ep_comm import measure

    def broken(group, shape):
        raise KeyError("here")

    monkeypatch.setattr(measure, "measure", broken)
    with pytest.raises(SystemExit) as caught:
        main(["bench", "backend=threads", "tokens=8", "hidden=64", "experts=16"])
    assert caught.value.code == 1
    assert "error: rank 0: KeyError: 'here'" in capsys.readouterr().err


def test_importing_costs_no_torch():
    code = "import ep_comm, ep_comm.size, ep_comm.model, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("scaleup", [0, 2])
def test_bench_of_emulated_nodes(scaleup):
    args = ("tokens=16", "hidden=256", "experts=16", "repeats=1", "ranks=4")
    got = records("bench", "backend=threads", f"scaleup={scaleup}", *args)
    by_name = {r["what"]: r for r in got}
    assert by_name["dispatch"]["wire_bytes"] > 0 and by_name["combine"]["wire_bytes"] > 0
    assert ("copies" in by_name) == (scaleup == 0)
