"""Time what users wait for: hits, keys, builds, launches."""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ascendkit.bench.environment import commit, device_name
from ascendkit.bench.timing import quantile
from ascendkit.cli import console
from ascendkit.jit.config import Config
from ascendkit.jit.digest import content_digest, digest
from ascendkit.jit.host import HostBackend
from ascendkit.jit.host_options import HostLaunchOptions, HostOptions
from ascendkit.jit.kernel import Kernel
from ascendkit.jit.runtime import Runtime

HEADERS = 64
HEADER_BYTES = 4096
COMMAND = "python -m ascendkit.jit bench"
LIMITS = {
    "memory_hit": 100.0,
    "disk_hit_64_headers": 3000.0,
    "disk_hit_64_headers_new_process": 3000.0,
}
"""Microseconds that the median must stay below."""

_FRESH = """
import sys, time
marks = [time.perf_counter()]
import ascendkit.jit
marks.append(time.perf_counter())
from ascendkit.jit.bench import headers_runtime, source
runtime = headers_runtime(sys.argv[1])
text = source()
marks.append(time.perf_counter())
runtime.toolkit
marks.append(time.perf_counter())
runtime.compile("bench", text)
marks.append(time.perf_counter())
print(*((after - before) * 1e6 for before, after in zip(marks, marks[1:])))
"""


@dataclass(frozen=True)
class Record:
    """One line of results."""

    name: str
    machine: str
    command: str
    commit: str
    figures: dict[str, float]

    @property
    def too_slow(self) -> bool:
        """Whether the median is above its limit."""
        return self.figures["p50_us"] > LIMITS.get(self.name, math.inf)


def run() -> list[Record]:
    """All measurements, in microseconds, in a cache of their own."""
    with tempfile.TemporaryDirectory() as folder:
        write_headers(Path(folder, "include"))
        figures = {
            **_digests(),
            **hits(folder),
            **fresh_process(folder),
            **_builds(folder),
            **_launches(folder),
        }
    return [_record(name, samples) for name, samples in figures.items()]


def show(records: list[Record]) -> None:
    """Print the records as a table."""
    from rich.table import Table

    table = Table(title=f"ascendkit.jit, microseconds ({records[0].machine})")
    for column in ("name", "p20", "p50", "p80", "samples", "limit"):
        justify: Literal["left", "right"] = "left" if column == "name" else "right"
        table.add_column(column, justify=justify, overflow="fold")
    for record in records:
        cells = [f"{record.figures[key]:.1f}" for key in ("p20_us", "p50_us", "p80_us")]
        limit = f"{LIMITS[record.name]:.0f}" if record.name in LIMITS else ""
        table.add_row(record.name, *cells, f"{record.figures['samples']:.0f}", limit)
    console().print(table)


def write_headers(folder: Path, size: int = HEADER_BYTES) -> None:
    """64 headers of about 4 KiB; header i includes 2i+1 and 2i+2, the leaves the last one too."""
    (folder / "graph").mkdir(parents=True)
    for index in range(HEADERS):
        children = [c for c in (2 * index + 1, 2 * index + 2) if c < HEADERS]
        if not children and index != HEADERS - 1:
            children = [HEADERS - 1]
        lines = ["#pragma once", *(f"#include <graph/h{child}.h>" for child in children)]
        lines.append(f"constexpr int value_{index} = {index};")
        text = "\n".join(lines) + "\n"
        filler = "// a line of commentary of the length that lines tend to have in real headers\n"
        text += filler * (max(size - len(text), 0) // len(filler))
        (folder / "graph" / f"h{index}.h").write_text(text)


def headers_runtime(folder: str) -> Runtime[HostOptions, HostLaunchOptions]:
    """A runtime that tracks the header graph below ``folder``."""
    root = Path(folder)
    config = Config(root, "BENCH", include_dirs=(root / "include",), include_prefixes=("graph/",))
    environ = {**os.environ, "BENCH_JIT_CACHE_DIR": str(root / "cache")}
    return Runtime(HostBackend(), config, environ=environ)


def source(value: int = 0) -> str:
    """A kernel on top of the header graph."""
    return (
        "#include <cstdint>\n#include <graph/h0.h>\n"
        "ASCENDKIT_KERNEL void f(uint32_t block_idx, uint32_t num_blocks, int* out)\n"
        f"{{ if (out) out[block_idx] = value_0 + {value}; }}\n"
    )


def hits(folder: str) -> dict[str, list[float]]:
    """Hits and keys of a running process; ``folder`` has the headers."""
    text = source()
    first = headers_runtime(folder)
    first.compile("bench", text)
    first.compile("bench", text, HostOptions(extra_flags=("-DX=1",)))
    ready = []
    for _ in range(50):
        runtime = headers_runtime(folder)
        _ = runtime.toolkit
        ready.append(runtime)
    keyed, loaded = iter(ready), iter(ready)
    return {
        "memory_hit": _time(lambda: first.compile("bench", text), 2000),
        "memory_hit_new_string": _time(lambda: first.compile("bench", source()), 2000),
        "memory_hit_new_options": _time(
            lambda: first.compile("bench", text, HostOptions(extra_flags=("-DX=1",))), 2000
        ),
        "key_64_headers": _time(lambda: next(keyed).cache_key(text + "\n"), 50),
        "disk_hit_64_headers": _time(lambda: _fresh(next(loaded)).compile("bench", text), 50),
    }


def _fresh(
    runtime: Runtime[HostOptions, HostLaunchOptions],
) -> Runtime[HostOptions, HostLaunchOptions]:
    runtime.forget_includes()
    return runtime


def fresh_process(folder: str) -> dict[str, list[float]]:
    """The same in processes that have compiled nothing; ``hits`` has filled the cache."""
    names = ("import", "", "ask_compiler_version", "disk_hit_64_headers_new_process")
    samples: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(20):
        argv = [sys.executable, "-c", _FRESH, folder]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        for name, figure in zip(names, done.stdout.split()):
            samples[name].append(float(figure))
    del samples[""]
    return samples


def _digests() -> dict[str, list[float]]:
    kib, mib = bytes(1 << 10), bytes(1 << 20)
    return {
        "fnv_digest_1_kib": _time(lambda: digest(kib), 100),
        "content_digest_1_mib": _time(lambda: content_digest(mib), 50),
    }


def _builds(folder: str) -> dict[str, list[float]]:
    runtime = headers_runtime(folder)
    values = iter(range(1, 100))
    cold = _time(lambda: runtime.compile("bench", source(next(values))), 10)

    def publish() -> None:
        with runtime.disk.stage() as staged:
            (staged / "kernel.so").write_bytes(bytes(1 << 16))
            runtime.disk.publish(staged, f"publish.{next(values):032x}")

    return {"cold_build": cold, "publish_64_kib": _time(publish, 20)}


def _launches(folder: str) -> dict[str, list[float]]:
    runtime = headers_runtime(folder)
    kernel: Kernel = runtime.compile("bench", source())
    one = HostLaunchOptions(num_blocks=1)
    function = kernel.symbol(kernel.entry)
    return {
        "launch_1_block": _time(lambda: runtime.launch(kernel, one, None), 2000),
        "direct_symbol_call": _time(lambda: function(0, 1, None), 2000),
    }


def _time(call: Callable[[], object], count: int) -> list[float]:
    samples = []
    for _ in range(count):
        start = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - start) / 1e3)
    return samples


def _record(name: str, samples: list[float]) -> Record:
    figures = {f"p{percent}_us": quantile(samples, percent / 100) for percent in (20, 50, 80)}
    figures = {"min_us": min(samples), **figures}
    return Record(
        name,
        f"{device_name('cpu')}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        COMMAND,
        commit(),
        {
            **{key: round(value, 2) for key, value in figures.items()},
            "samples": len(samples),
            "load": round(os.getloadavg()[0], 2),
            "nice": os.nice(0),
        },
    )
