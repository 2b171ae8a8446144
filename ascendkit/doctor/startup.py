"""``python -m ascendkit.doctor.startup``: how long imports and commands take from a cold process.

Each command runs in fresh processes, one warm-up first (it writes the byte code), then the median.
Lines are appended to ``results/startup.jsonl`` with machine, command and commit.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ascendkit.bench.environment import commit, device_name
from ascendkit.doctor.evidence import results
from ascendkit.doctor.machine import cores
from ascendkit.registry import components

REPEATS = 7


@dataclass(frozen=True)
class Startup:
    """Time of one command, in seconds.

    Args:
        command: as typed.
        min_s: shortest wall time; ``p50_s`` the median, ``max_s`` the longest.
        cpu_p50_s: median processor time, which other work on the machine hardly changes.
        load: processes that wanted to run in the last minute; above ``cores``, wall time is not
            the command's own.
        repeats: counted runs.
    """

    command: str
    min_s: float
    p50_s: float
    max_s: float
    cpu_p50_s: float
    load: float
    repeats: int
    exit_code: int
    machine: str
    cores: int
    python: str
    commit: str
    taken: str


def commands() -> list[list[str]]:
    """Interpreter alone, every import, and every command that answers without work."""
    imports = ["ascendkit", "ascendkit.budget", *components()]
    bare = [["-c", "pass"]]
    return [
        *bare,
        *(["-c", f"import {name}"] for name in imports),
        *(["-m", "ascendkit", name] for name in ("doctor", "env", "status")),
        ["-m", "ascendkit.budget"],
        ["-m", "ascendkit.check", "--help"],
    ]


def measure(command: Sequence[str], repeats: int = REPEATS) -> Startup:
    """Time ``python <command>`` in ``repeats`` fresh processes, after one that is not counted."""
    seconds, spent = [], []
    for _ in range(repeats + 1):
        begin, used = time.perf_counter(), _children_s()
        done = subprocess.run([sys.executable, *command], capture_output=True, check=False)
        seconds.append(time.perf_counter() - begin)
        spent.append(_children_s() - used)
    counted = [round(s, 4) for s in seconds[1:]]
    return Startup(
        command=" ".join(("python", *command)),
        min_s=min(counted),
        p50_s=round(statistics.median(counted), 4),
        max_s=max(counted),
        cpu_p50_s=round(statistics.median(spent[1:]), 4),
        load=round(os.getloadavg()[0], 2),
        repeats=repeats,
        exit_code=done.returncode,
        machine=device_name("cpu"),
        cores=cores(),
        python=platform.python_version(),
        commit=commit(),
        taken=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(path: Path) -> int:
    """Measure all commands, print and append each; 1 where one of them failed."""
    failed = False
    for command in commands():
        record = measure(command)
        failed |= record.exit_code != 0
        print(
            f"{record.p50_s:8.3f} s wall {record.cpu_p50_s:8.3f} s processor  {record.command}"
            f"  (exit {record.exit_code})",
            flush=True,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(asdict(record)) + "\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(results() / "startup.jsonl"))
