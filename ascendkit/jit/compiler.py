"""The cold half of the runtime: from a key to a proved entry on disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ascendkit.jit import builder, history, lock
from ascendkit.jit.backend import Backend, Job, Toolkit
from ascendkit.jit.config import Config
from ascendkit.jit.disk import DiskCache, Entry
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import CompileError
from ascendkit.jit.files import stamp
from ascendkit.jit.key import KeyMaker, StaleKey
from ascendkit.jit.lazy import LazyInit
from ascendkit.jit.options import CompilerT
from ascendkit.jit.request import Request

_ATTEMPTS = 4

T = TypeVar("T")


class Compiler(Generic[CompilerT]):
    """Finds or builds entries for one backend, configuration and environment.

    Args:
        environment: as it was when the runtime was made.
        live: as it is now, for the switches that print.
    """

    def __init__(
        self,
        backend: Backend[CompilerT, Any],
        config: Config,
        environment: Environment,
        live: Environment,
    ) -> None:
        self._backend = backend
        self._config = config
        self._environment = environment
        self._live = live
        self.disk = DiskCache(environment.cache_roots())
        self._lock_timeout_s = environment.integer("JIT_LOCK_TIMEOUT", 600, low=0, high=86400)
        self._toolkit = LazyInit(self._find_toolkit)
        self._keys = KeyMaker(backend, config)

    @property
    def toolkit(self) -> Toolkit:
        """The programs, looked for on first use."""
        return self._toolkit.get()[0]

    def digest(self, source: str, options: CompilerT) -> str:
        """See ``KeyMaker``."""
        return self._keys.digest(source, options, self.toolkit)

    def forget(self) -> None:
        """Read headers, hooks and link inputs anew."""
        self._keys.forget()

    def entry(self, name: str, source: str, options: CompilerT) -> Entry:
        """The entry called ``name``, from the first root that has it, else built now.

        Raises:
            StaleKey: what ``name`` was computed from has changed; compute it again.
            ToolkitError, CompileError, CacheError: see ``errors``.
        """
        found = self.disk.lookup(name)
        if found is not None:
            return found
        return lock.once(
            self.disk.lock_path(name),
            claimed=lambda: self.disk.has_marker(name),
            ready=lambda patient: self.disk.lookup(name, patient=patient),
            build=lambda: self._build(name, source, options),
            timeout_s=self._lock_timeout_s,
        )

    def settled(self, tag: str, make: Callable[[], T]) -> T:
        """``make()``, again if what its key stands for changed while it was at work."""
        for _ in range(_ATTEMPTS):
            try:
                return make()
            except StaleKey:
                self.forget()
        raise CompileError(tag, "its headers, hook, link inputs or compiler keep changing")

    def _find_toolkit(self) -> tuple[Toolkit, tuple[int, ...]]:
        toolkit = self._backend.find_toolkit(self._environment)
        return toolkit, _stamp(toolkit)

    def _check(self, name: str, source: str, options: CompilerT) -> None:
        """Raise StaleKey unless ``name`` still is the key of what a compiler would read now.

        A header edited since this runtime first read it would otherwise be compiled under the key
        of its old contents, and served to whoever has those.
        """
        toolkit, before = self._toolkit.get()
        if _stamp(toolkit) != before:
            self._toolkit.set(self._find_toolkit)
            raise StaleKey
        now = KeyMaker(self._backend, self._config).digest(source, options, toolkit)
        if now != name.rpartition(".")[2]:
            raise StaleKey

    def _build(self, name: str, source: str, options: CompilerT) -> Entry:
        self._check(name, source, options)
        with self.disk.stage() as folder:
            job = Job(
                tag=name.partition(".")[0],
                name=name,
                directory=folder,
                options=options,
                toolkit=self.toolkit,
                include_dirs=self._config.include_dirs,
                environment=self._environment,
            )
            command = builder.build(self._backend, self._config, self.disk, job, source)
            if self._live.flag("JIT_PRINT_COMPILER_COMMAND", self._live.flag("JIT_DEBUG")):
                report(command)
            self._check(name, source, options)
            entry = self.disk.publish(folder, name)
        history.record(
            self.disk.roots[0], Request(self._backend, self._config, job.tag, source, options)
        )
        return entry


def _stamp(toolkit: Toolkit) -> tuple[int, ...]:
    try:
        return stamp(toolkit.path)
    except OSError:
        return ()


def report(text: str) -> None:
    """Print a diagnostic line that the environment asked for."""
    print(f"[ascendkit.jit] {text}", file=sys.stderr, flush=True)
