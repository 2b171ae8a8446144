"""The run for several devices, on gloo: it checks, times, fits and records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ep_comm.model.link import link_constants

ROOT = Path(__file__).parents[2]


@pytest.mark.mpi
def test_on_gloo():
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "ep_comm",
        "multi", "backend=gloo", "tokens=[16]", "hidden=[256,512]", "topk=[2]", "experts=8",
        "repeats=1", "intermediate=32", "output=json", "matrix=2",
    ]  # fmt: skip
    got = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200)
    assert got.returncode == 0, got.stderr[-2000:]
    records = [json.loads(x) for x in got.stdout.splitlines() if x.startswith("{")]
    by_kind = {r["record"]: r for r in records}
    assert by_kind["ep_comm_multi_check"]["faults"] == []
    assert by_kind["ep_comm_multi_check"]["ranks"] == 2
    assert (by_kind["ep_comm_multi_waits"]["calls"], by_kind["ep_comm_multi_waits"]["watched"]) == (
        12,
        0,
    )
    assert by_kind["ep_comm_multi_fit"]["wire_gbs"] > 0
    assert {r["what"] for r in records if r["record"] == "ep_comm_multi_time"} >= {
        "dispatch", "combine", "all_to_all",
    }  # fmt: skip
    assert any(r.get("what") == "products beside combine" for r in records)


def test_constants_of_a_known_link():
    points = [(b, 5.0 + b / 300e3) for b in (1e5, 1e6, 1e7, 1e8)]
    rate, start, errors = link_constants(points)
    assert rate == pytest.approx(300) and start == pytest.approx(5)
    assert max(map(abs, errors)) < 1e-9
    rate, start, _ = link_constants([(1e6, 1.0), (1e7, 20.0)])
    assert start == 0.0 and rate > 0
    with pytest.raises(ValueError, match="wanted at least 2"):
        link_constants([(1e6, 1.0)])


def test_outside_a_launcher_it_says_how():
    got = subprocess.run(
        [sys.executable, "-m", "ep_comm", "multi"], capture_output=True, text=True, cwd=ROOT
    )
    assert got.returncode == 2 and "torchrun --nproc-per-node" in got.stderr
