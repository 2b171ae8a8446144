"""Many cold processes, few keys: one compilation a key, one artifact for all."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

SCRIPT = Path(__file__).with_name("compile_once.py")
SLOW = "sleep 0.3; make"


class Crowd:
    """Processes that start compiling at the same moment."""

    def __init__(self, home: Path, fake: FakeCompiler) -> None:
        self.home, self.fake = home, fake
        self.order = {"compiler": str(fake.path), "root": str(home / "cache root")}

    def run(self, jobs_of_each: list[list[list[str]]]) -> list[list[list[str]]]:
        ready, go = self.home / "ready", self.home / "go"
        ready.mkdir(exist_ok=True)
        order = {**self.order, "ready": str(ready), "go": str(go)}
        processes = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), json.dumps({**order, "jobs": jobs})],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            for jobs in jobs_of_each
        ]
        while len(list(ready.iterdir())) < len(processes):
            assert all(process.poll() in (None, 0) for process in processes)
            time.sleep(0.01)
        go.touch()
        outputs = [process.communicate(timeout=120) for process in processes]
        failed = [errors for process, (_, errors) in zip(processes, outputs) if process.returncode]
        assert not failed, failed[0]
        go.unlink()
        for path in ready.iterdir():
            path.unlink()
        return [json.loads(output) for output, _ in outputs]


@pytest.fixture
def crowd(home: Path, fake: FakeCompiler) -> Crowd:
    return Crowd(home, fake)


def test_thirty_two_cold_processes_one_key(crowd: Crowd, make: Make, fake: FakeCompiler) -> None:
    fake.act(SLOW)
    answers = crowd.run([[["k", "int x;"]]] * 32)
    assert fake.runs == 1
    assert len({json.dumps(answer) for answer in answers}) == 1
    assert (entries(make()), leftovers(make())) == ([answers[0][0][0]], [])
    crowd.run([[["k", "int x;"]]] * 2)
    assert fake.runs == 1, "hits run no compiler"


def test_eight_processes_three_times(crowd: Crowd, make: Make, fake: FakeCompiler) -> None:
    """The same source under other tags: one digest, an entry and a compilation a tag."""
    for round_ in range(3):
        answers = crowd.run([[[f"round{round_}", "int x;"]]] * 8)
        assert fake.runs == round_ + 1
        assert len({json.dumps(answer) for answer in answers}) == 1
    assert len({name.partition(".")[2] for name in entries(make())}) == 1


def test_mixed_keys(crowd: Crowd, make: Make, fake: FakeCompiler, seed: int) -> None:
    """Each artifact holds its own source, whoever made it, in whatever order."""
    draw = random.Random(seed)
    fake.act("sleep 0.01; make")
    jobs = [[f"k{number % 3}", f"int value = {number};"] for number in range(12)]
    orders = [draw.sample(jobs, len(jobs)) for _ in range(8)]
    answers = crowd.run(orders)
    assert fake.runs == len(jobs)
    template = (fake.folder / "template.so").read_bytes()
    runtime = make()
    for order, answer in zip(orders, answers):
        for (tag, source), (name, found) in zip(order, answer):
            assert name == f"{tag}.{runtime.cache_key(source)}"
            assert found == sha256(template + source.encode()).hexdigest()
    assert leftovers(runtime) == []


@pytest.mark.parametrize("processes", [4, 8])
def test_direct_publication(home: Path, make: Make, processes: int) -> None:
    """Without the lock, as on a file system that has none: one winner, nothing mixed."""
    disk = make().disk
    name = f"k.{'0' * 32}"
    children = []
    gate, opened = os.pipe()
    for number in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(opened)
                os.read(gate, 1)
                with disk.stage() as staged:
                    for file in ("kernel.so", "meta.json"):
                        (staged / file).write_text(str(number) * 100_000)
                    entry = disk.publish(staged, name)
                contents = {(entry.directory / f).read_text() for f in ("kernel.so", "meta.json")}
                code = 0 if len(contents) == 1 else 1
            finally:
                os._exit(code)
        children.append(child)
    os.close(opened)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == (
        [0] * processes
    )
    entry = disk.lookup(name)
    assert entry is not None
    assert len({(entry.directory / f).read_text() for f in ("kernel.so", "meta.json")}) == 1
    assert leftovers(make()) == []


def test_a_compile_error_reaches_everyone(crowd: Crowd, make: Make, fake: FakeCompiler) -> None:
    fake.act('case "$(cat kernel.cpp)" in *bad*) echo broken >&2; exit 1;; *) make;; esac')
    with pytest.raises(AssertionError, match=r"exit code 1"):
        crowd.run([[["k", "bad"]]] * 4)
    (crowd.home / "go").unlink()
    assert (entries(make()), leftovers(make())) == ([], [])
    crowd.run([[["k", "good"]]] * 2)
