"""``python -m ep_comm``: every command, its records, and its refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def call(*args: str, code: int = 0) -> str:
    got = subprocess.run(
        [sys.executable, "-m", "ep_comm", *args], capture_output=True, text=True, cwd=ROOT
    )
    assert got.returncode == code, got.stderr + got.stdout
    return got.stdout if code == 0 else got.stderr


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
        (("size", "topk=33"), "num_topk: got 33"),
        (("size", "tokens=many"), "tokens: got 'many', wanted an integer"),
        (("model", "machine=h80"), "nearest: h800"),
        (("bench", "backend=nccl"), "torchrun"),
        (("bench", "backend=mip"), "nearest: mpi"),
    ],
)
def test_refusals_are_one_line(args, text):
    err = call(*args, code=2)
    assert text in err and err.count("\n") == 1


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
