"""kill -9 of the writer, anywhere; then recovery."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ascendkit.jit.inventory import items
from ascendkit.jit.prune import prune

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler

POINTS = 200


def test_two_hundred_random_points(home: Path, fake: FakeCompiler, make: Make, seed: int) -> None:
    """No entry is ever half there, the next reader gets the right one, and nothing piles up."""
    order = {
        "compiler": str(fake.path),
        "root": str(home / "cache root"),
        "template": str(fake.folder / "template.so"),
        "seed": seed,
        "points": POINTS,
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_writer.py")), json.dumps(order)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == [], f"seed {seed}: {report}"
    assert report["killed"] == POINTS
    assert report["halves"] > POINTS // 10, f"seed {seed}: few were killed in a build: {report}"
    runtime = make()
    assert all(item.state == "sound" for item in items(runtime.disk.roots[0]))
    pruned = prune(runtime.disk.roots[0])
    assert not pruned.entries
    assert leftovers(runtime) == []


def test_killed_while_the_compiler_runs(home: Path, fake: FakeCompiler, make: Make) -> None:
    """The lock goes with its holder at once; the orphaned compiler disturbs nobody."""
    fake.act('touch "$here/started"; sleep 3; make; touch "$here/finished"')
    script = Path(__file__).with_name("compile_once.py")
    order = {"compiler": str(fake.path), "root": str(home / "cache root"), "jobs": [["k", "x"]]}
    order |= {"ready": str(home), "go": str(fake.path)}
    writer = subprocess.Popen(
        [sys.executable, str(script), json.dumps(order)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while not (fake.folder / "started").exists():
        assert writer.poll() is None
        time.sleep(0.005)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    fake.behave()
    runtime = make()
    start = time.monotonic()
    assert runtime.compile("k", "x").loaded
    assert time.monotonic() - start < 2.5
    assert len(entries(runtime)) == 1
    deadline = time.monotonic() + 20
    while not (fake.folder / "finished").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    prune(runtime.disk.roots[0])
    assert leftovers(runtime) == []
    assert make().compile("k", "x").loaded


def test_a_crashed_publisher_that_left_a_final_folder(make: Make, fake: FakeCompiler) -> None:
    """Not by us, whose rename is atomic, but by a copy that was interrupted."""
    runtime = make()
    name = f"k.{runtime.cache_key('x')}"
    final = runtime.disk.roots[0] / "cache" / name
    final.mkdir(parents=True)
    (final / "kernel.so").write_bytes(b"half")
    assert runtime.compile("k", "x").loaded
    assert (fake.runs, entries(runtime), leftovers(runtime)) == (1, [name], [])
