"""Processes that run collective code for a caller who is one process: a test, a check, a bench.

``Pool("mpi", 4).run("module:function", [args of rank 0, ...])`` calls ``function(group, *args)`` on
every rank and returns what each returned. Tasks and results are files in a private folder, so the
processes live on between calls; an exception of a rank comes back as :class:`RankError`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.errors import unknown

BACKENDS = ("threads", "mpi", "gloo")
"""Backends that need no accelerator."""
POLL_S = 0.005
LAST_S = 1.0
AFTER_ERROR_S = 20.0
"""How long ranks may go on once one has raised: they may be waiting for it."""
OUTLIVE = ("sh", "-c", "trap '' USR1; \"$@\"; exit 0", "sh")
"""Before a rank's command: MPICH's process manager ends all ranks, cleanup or not, about one time
in four when it sees one die of a signal, and tells the others by SIGUSR1. So it sees a shell that
ends well."""


class RankError(RuntimeError):
    """What a rank raised: ``kind``, its message, and the rank."""

    def __init__(self, rank: int, kind: str, text: str) -> None:
        super().__init__(f"rank {rank}: {kind}: {text}")
        self.rank, self.kind, self.text = rank, kind, text


class Pool:
    """Ranks of one backend, started once.

    Args:
        backend: threads (of this process), mpi or gloo.
        ranks: how many.
        scaleup_ranks: ranks of one emulated node; all if None.
        survive: ranks outlive one that dies (faults are the point of the test).
    """

    def __init__(
        self, backend: str, ranks: int, scaleup_ranks: int | None = None, survive: bool = False
    ) -> None:
        if backend not in BACKENDS:
            raise unknown("backend", backend, BACKENDS)
        self.backend, self.ranks, self._near, self._survive = backend, ranks, scaleup_ranks, survive
        self._number = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._folder: Path | None = None

    def run(
        self, function: str, args: Sequence[tuple[Any, ...]], timeout_s: float = 120.0
    ) -> list[Any]:
        """``function`` (``module:name``) on every rank; results by rank, errors as RankError."""
        got = self.outcomes(function, args, timeout_s)
        errors = [one for one in got if isinstance(one, RankError)]
        if errors:
            # A rank that misses a peer says less than the peer's own error.
            raise min(errors, key=lambda e: e.kind in ("PeerTimeout", "PeerFailed"))
        return got

    def outcomes(
        self, function: str, args: Sequence[tuple[Any, ...]], timeout_s: float = 120.0
    ) -> list[Any]:
        """As :meth:`run`, with errors in the list; None for a rank that never answered."""
        import torch

        if self.backend == "threads":
            return self._in_threads(function, args)
        self._start()
        assert self._folder is not None
        self._number += 1
        task = self._folder / f"task-{self._number}.pt"
        torch.save((function, list(args)), task.with_suffix(".part"))
        task.with_suffix(".part").rename(task)
        places = [self._folder / f"result-{self._number}-{r}.pt" for r in range(self.ranks)]
        deadline = time.monotonic() + timeout_s
        seen: set[Path] = set()
        while (left := sum(not p.exists() for p in places)) > 0:
            fresh = {p for p in places if p.exists()} - seen
            if any(torch.load(p, weights_only=False)[0] for p in fresh):
                deadline = min(deadline, time.monotonic() + AFTER_ERROR_S)
            seen |= fresh
            dead = all(p.poll() is not None for p in self._processes)
            if dead or time.monotonic() > deadline:
                break
            if self._survive and left == 1:
                # The last one may be late, or gone: it gets a little longer.
                deadline = min(deadline, time.monotonic() + LAST_S)
            time.sleep(POLL_S)
        missing = [r for r, p in enumerate(places) if not p.exists()]
        found = [torch.load(p, weights_only=False) if p.exists() else None for p in places]
        got = [RankError(r, *f[1]) if f and f[0] else f and f[1] for r, f in enumerate(found)]
        if missing and not self._survive:
            told = self._told()
            self.close()
            if not any(isinstance(g, RankError) for g in got):
                raise RuntimeError(f"{function}: no answer from ranks {missing}: {told}")
        return got

    def close(self) -> None:
        """End the processes and remove the folder."""
        if self._folder is None:
            return
        (self._folder / "stop").touch()
        for p in self._processes:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._processes, self._folder = [], None
        atexit.unregister(self.close)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- processes --------------------------------------------------------------------------------
    def _start(self) -> None:
        if self._processes:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="ep_comm-"))
        atexit.register(self.close)
        root = str(Path(__file__).resolve().parent.parent)
        env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=_joined(root))
        work = [sys.executable, "-m", "ep_comm.worker", self.backend, str(self._folder)]
        work += [str(self._near or 0), str(os.getpid())]
        if self.backend == "mpi":
            flags = []
            if self._survive:
                flags, work = ["-disable-auto-cleanup"], [*OUTLIVE, *work]
            self._spawn([mpiexec(), *flags, "-n", str(self.ranks), *work], env)
            return
        for rank in range(self.ranks):
            own = {"RANK": str(rank), "WORLD_SIZE": str(self.ranks)}
            self._spawn(work, {**env, **own})

    def _spawn(self, command: list[str], env: dict[str, str]) -> None:
        assert self._folder is not None
        with (self._folder / f"log-{len(self._processes)}").open("wb") as log:
            self._processes.append(
                subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def _told(self) -> str:
        assert self._folder is not None
        logs = [p.read_text(errors="replace").strip() for p in sorted(self._folder.glob("log-*"))]
        return " | ".join(text[-600:] for text in logs if text) or "the processes said nothing"

    def _in_threads(self, function: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        from ep_comm.transport import threads
        from ep_comm.worker import resolve

        call = resolve(function)

        def one(group: Any) -> Any:
            try:
                return call(group, *args[group.rank])
            except Exception as e:
                return RankError(group.rank, type(e).__name__, str(e))

        return threads.run(self.ranks, one, self._near)


def mpiexec() -> str:
    """The launcher beside this interpreter, else the one on PATH. ValueError where none is."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if not found:
        raise ValueError("mpiexec: not found; wanted: pip install mpi4py 'mpich>=5'")
    return found


def available(backend: str) -> str:
    """Why a backend cannot run here; empty where it can."""
    import importlib.util

    if backend == "mpi":
        if importlib.util.find_spec("mpi4py") is None:
            return "mpi4py is not installed (pip install -e '.[mpi]')"
        try:
            mpiexec()
        except ValueError as e:
            return str(e)
    return ""


def _joined(root: str) -> str:
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
