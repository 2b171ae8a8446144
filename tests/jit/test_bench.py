"""Import time, and the figures users wait for, against their limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit.jit import bench

IMPORT_LIMIT_S = 0.2


def test_import_is_quick_and_light() -> None:
    script = """
import sys, time
start = time.process_time()
import ascendkit.jit
print(time.process_time() - start)
heavy = {"numpy", "torch", "tilelang", "rich", "hydra"} & set(sys.modules)
assert not heavy, heavy
"""
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        times.append(float(done.stdout))
    assert min(times) < IMPORT_LIMIT_S


def test_import_looks_for_nothing(tmp_path: Path) -> None:
    """With a broken compiler and no home, importing works and creates nothing."""
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path), "CXX": "/none"}
    environ["ASCENDKIT_JIT_HOST_COMPILER"] = "/none"
    environ["PYTHONPATH"] = ":".join(sys.path)
    script = "import ascendkit.jit as j; j.shared_runtime; j.HostBackend()"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.benchmark
def test_limits(tmp_path: Path) -> None:
    """Hits meet their limits; judged by the quickest sample, since other work may be going on."""
    bench.write_headers(tmp_path / "include")
    samples = bench.hits(str(tmp_path)) | bench.fresh_process(str(tmp_path))
    for name, limit in bench.LIMITS.items():
        assert min(samples[name]) < limit, name


def test_what_counts_as_too_slow() -> None:
    figures = {"p50_us": 101.0}
    assert bench.Record("memory_hit", "m", "c", "abc", figures).too_slow
    assert not bench.Record("cold_build", "m", "c", "abc", figures).too_slow


def test_written_results_are_complete() -> None:
    """Each committed line names its machine, command and commit, and meets its limit."""
    folder = Path(__file__).resolve().parents[2] / "results"
    lines = [line for path in folder.glob("jit_*.jsonl") for line in path.open()]
    records = [bench.Record(**json.loads(line)) for line in lines]
    assert {record.name for record in records} >= set(bench.LIMITS)
    for record in records:
        assert record.machine and record.command and record.commit
        assert not record.too_slow, record
