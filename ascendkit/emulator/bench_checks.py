"""``python -m ascendkit.emulator.bench_checks [FILE]``: what a checked launch costs on this host.

The seconds are of this CPU, of a launch with and without ``check=True``; they say nothing about an
NPU. Both kinds of launch take turns, so that other work on the host slows both, and the figure is
the median of the ratios of neighbours.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ascendkit.emulator import bench

COMMAND = "python -m ascendkit.emulator.bench_checks"
LIMIT = 3.0
"""Times the seconds of a launch without checks."""
TURNS, SECONDS = 15, 8.0
"""Launches of each kind: as many, or as fit into this time; at least five."""


@dataclass(frozen=True)
class Cost:
    """Medians: seconds of a launch without and with checks, and their ratio within a turn."""

    values: float
    checked: float
    ratio: float


def cost(call: Callable[[], object]) -> Cost:
    """Of launches that ``call`` makes."""
    seconds: dict[str, list[float]] = {"0": [], "1": []}
    start = time.perf_counter()
    for turn in range(TURNS + 1):
        for check, kept in seconds.items():
            with patch.dict(os.environ, ASCENDKIT_EMULATOR_CHECK=check):
                before = time.perf_counter()
                call()
                if turn:  # the first one compiles
                    kept.append(time.perf_counter() - before)
        if turn == 0:
            start = time.perf_counter()
        elif turn >= 5 and time.perf_counter() - start > SECONDS:
            break
    ratios = [checked / plain for plain, checked in zip(*seconds.values())]
    return Cost(*(statistics.median(found) for found in (*seconds.values(), ratios)))


def measure() -> Iterator[dict[str, object]]:
    """One row a kernel: seconds without and with checks, and the peak memory of the process; one of
    memory, from a process of its own."""
    import torch

    from ascendkit.bench.environment import commit, device_name
    from ascendkit.emulator import active, as_npu, samples
    from ascendkit.emulator.device import default_threads
    from ascendkit.emulator.kernel import EmulatedKernel

    def row(name: str, call: Callable[[], object]) -> dict[str, object]:
        seconds = cost(call)
        return {
            "name": name,
            "values_s": round(seconds.values, 5),
            "checked_s": round(seconds.checked, 5),
            "ratio": round(seconds.ratio, 2),
            "limit": LIMIT,
            "ok": seconds.ratio <= LIMIT,
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "host_threads": default_threads(),
            "load_average": round(os.getloadavg()[0], 1),
            "machine": device_name("cpu"),
            "commit": commit(),
            "command": COMMAND,
        }

    command = [sys.executable, "-W", "ignore", "-m", "ascendkit.emulator.bench_memory"]
    yield json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rate, x = EmulatedKernel(bench._RATE), torch.randn(256)
    yield row("vector_instructions", lambda: rate.launch([x, 20_000], grid=1))
    with active():
        a, b = torch.randn(2, 1024, 1024).bfloat16()
        matmul = samples.matmul(1024, 1024, 1024)
        yield row("bf16_gemm_1024", lambda: matmul(a, b))
    if not find_spec("tile_kernels"):
        return
    with as_npu():
        from tile_kernels.quant.per_token_cast_kernel import per_token_cast

        y = torch.randn(1024, 7168).bfloat16()
        options: dict[str, Any] = {"round_sf": True, "use_packed_ue8m0": True}
        yield row("per_token_cast_1024_7168", lambda: per_token_cast(y, "e4m3", 32, **options))


def main(path: Path | None) -> int:
    """Print the rows, append them to ``path``; 1 if one is over the limit."""
    over = 0
    for one in measure():
        print(json.dumps(one))
        over += not one["ok"]
        if path:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
