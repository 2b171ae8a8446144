"""Compile many kernels in worker processes. No worker loads a kernel or touches a device."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from ascendkit.jit.errors import CompileError, JitError
from ascendkit.jit.request import Request

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from ascendkit.jit.worker import serve; serve()"
)

Outcome = Path | JitError


def compile_requests(
    requests: Sequence[Request[Any]], workers: int, environ: Mapping[str, str]
) -> list[Outcome]:
    """The entry folder or the error of each request, in order.

    Workers are fresh interpreters, not forks and not re-runs of the main module: they work under
    any caller, and a crash of one costs only the request it was working on.
    """
    waiting: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    outcomes: list[Outcome] = [JitError("not compiled")] * len(requests)
    for index, request in enumerate(requests):
        waiting.put((index, request.dump()))

    def drive() -> None:
        process: subprocess.Popen[str] | None = None
        try:
            while True:
                try:
                    index, line = waiting.get_nowait()
                except queue.Empty:
                    return
                if process is None or process.poll() is not None:
                    process = _start(environ)
                outcomes[index] = _ask(process, line)
        finally:
            if process is not None:
                process.communicate()

    threads = [threading.Thread(target=drive) for _ in range(min(workers, len(requests)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        # Interrupted: finish what is under way, start nothing new.
        with suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        raise
    return outcomes


def default_workers() -> int:
    """One for each CPU this process may use."""
    return len(os.sched_getaffinity(0))


def _start(environ: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path)],
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def _ask(process: subprocess.Popen[str], line: str) -> Outcome:
    try:
        _send(cast(IO[str], process.stdin), line)
        answer = cast(IO[str], process.stdout).readline()
    except OSError:
        answer = ""
    if not answer:
        return JitError(f"a compile worker ended with status {process.wait()}")
    record = json.loads(answer)
    if "folder" in record:
        return Path(record["folder"])
    if "compile_error" in record:
        return CompileError(*record["compile_error"])
    return JitError(record["error"])


def _send(pipe: IO[str], line: str) -> None:
    pipe.write(line + "\n")
    pipe.flush()
