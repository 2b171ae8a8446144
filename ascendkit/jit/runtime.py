"""The runtime: from a kernel's text to its launch."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic

from ascendkit.errors import bad_type, bad_value
from ascendkit.jit import forks
from ascendkit.jit.backend import Backend, Toolkit
from ascendkit.jit.compiler import Compiler, report
from ascendkit.jit.config import Config
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import LaunchError, LoadError
from ascendkit.jit.kernel import Kernel
from ascendkit.jit.manifest import Damage
from ascendkit.jit.memory import MemoryCache
from ascendkit.jit.options import CompilerT, LaunchT
from ascendkit.jit.request import Request

MAX_TAG = 160
_TAG = re.compile(r"[A-Za-z0-9_]+")
_REMEMBERED = 4096


class Runtime(Generic[CompilerT, LaunchT]):
    """Compiles kernels once, keeps them, loads and launches them.

    Making a runtime searches for no compiler and creates no folder; the first key does. The
    environment is read once, now, except for the switches that print.

    Args:
        backend: the machine, e.g. ``HostBackend()``.
        config: settings of the library.
        environ: variables to use in place of ``os.environ``.

    Raises:
        ValueError: an environment variable does not make sense.
    """

    def __init__(
        self,
        backend: Backend[CompilerT, LaunchT],
        config: Config,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.backend = backend
        self.config = config
        self._live = Environment(config.env_prefix, os.environ if environ is None else environ)
        self.environment = Environment(config.env_prefix, dict(self._live.variables))
        self._compiler = Compiler(backend, config, self.environment, self._live)
        self.disk = self._compiler.disk
        self.default_compiler_options = backend.default_options(self.environment)
        self.default_launch_options = backend.default_launch(self.environment)
        self._kernels: MemoryCache[Kernel] = MemoryCache()
        self._names: dict[tuple[Any, ...], str] = {}
        forks.register(self)

    @property
    def toolkit(self) -> Toolkit:
        """The compiler, looked for on first use."""
        return self._compiler.toolkit

    @property
    def device(self) -> str:
        """What kernels are compiled for."""
        return f"{self.backend.name} {self.toolkit.arch}".strip()

    def cache_key(self, source: str, options: CompilerT | None = None) -> str:
        """The digest that names ``source`` under ``options``: 32 hexadecimal digits."""
        return self._compiler.digest(source, self.effective(options))

    def compile(self, tag: str, source: str, options: CompilerT | None = None) -> Kernel:
        """The loaded kernel; from memory, else from disk, else from the compiler.

        Args:
            tag: ``[A-Za-z0-9_]+``, the readable half of the entry's name; not part of the digest.
            source: the kernel's text.
            options: overrides of ``default_compiler_options``.

        Raises:
            ValueError, TypeError: bad tag, options or includes.
            ToolkitError, CompileError, CacheError, LoadError: see ``errors``.
        """
        request = (tag, source, options, self.default_compiler_options)
        name = self._names.get(request)
        kernel = self._kernels.find(name) if name is not None else None
        if kernel is not None and kernel.loaded:
            return kernel

        def make() -> Kernel:
            name = self._name(tag, source, options)
            kernel = self._kernels.find(name)
            if kernel is not None and not kernel.loaded:
                self._kernels.drop(name)
            load = partial(self._load, name, source, self.effective(options))
            made = self._kernels.get(name, load)
            if len(self._names) >= _REMEMBERED:
                self._names.clear()
            self._names[request] = name
            return made

        return self._compiler.settled(tag, make)

    def compile_without_load(self, tag: str, source: str, options: CompilerT | None = None) -> Path:
        """The folder of the compiled entry. Touches no device and does not count kernels.

        Raises:
            As ``compile``, but for LoadError.
        """

        def make() -> Path:
            name = self._name(tag, source, options)
            return self._compiler.entry(name, source, self.effective(options)).directory

        return self._compiler.settled(tag, make)

    def par_compile(
        self,
        kernels: Iterable[tuple[str, str] | tuple[str, str, CompilerT | None]],
        *,
        workers: int | None = None,
    ) -> list[Path]:
        """Compile many kernels in worker processes; touches no device, loads nothing.

        Args:
            kernels: (tag, source) or (tag, source, options); repeats and hits cost no compiler run.
            workers: processes, by default one a CPU.

        Returns:
            The entry folders, in order.

        Raises:
            ValueError, TypeError: as ``compile``, before anything is compiled.
            ExceptionGroup: of the errors of those that failed, after all others are compiled.
        """
        from ascendkit.jit.parallel import compile_requests, default_workers

        if workers is not None and workers < 1:
            raise bad_value("workers", workers, "at least 1", 1)
        names = []
        missing: dict[str, Request[CompilerT]] = {}
        folders: dict[str, Path] = {}
        for tag, source, *rest in kernels:
            options = self.effective(rest[0] if rest else None)
            name = self._name(tag, source, options)
            names.append(name)
            if name in folders or name in missing:
                continue
            found = self.disk.lookup(name)
            if found is not None:
                folders[name] = found.directory
            else:
                missing[name] = Request(self.backend, self.config, tag, source, options)
        outcomes = compile_requests(
            list(missing.values()), workers or default_workers(), self.environment.variables
        )
        failed = [outcome for outcome in outcomes if not isinstance(outcome, Path)]
        if failed:
            raise ExceptionGroup(f"{len(failed)} of {len(names)} kernels did not compile", failed)
        folders.update((n, o) for n, o in zip(missing, outcomes) if isinstance(o, Path))
        return [folders[name] for name in names]

    def launch(self, kernel: Kernel, options: LaunchT, *args: object) -> None:
        """Launch ``kernel`` with ``options`` over ``default_launch_options``.

        Raises:
            LaunchError: no kernel, or an unloaded one.
            ValueError, TypeError: options or arguments missing or out of range.
        """
        if kernel is None:
            raise LaunchError("kernel must not be null")
        if not isinstance(kernel, Kernel):
            raise bad_type("kernel", kernel, "Kernel")
        complete = options.over(self.default_launch_options)
        missing = complete.unset()
        if missing:
            raise ValueError(f"{', '.join(missing)} must be specified")
        if not kernel.entry:
            raise LaunchError(f"{kernel.name} is a library, wanted a kernel")
        self.backend.launch(kernel.module, kernel.entry, complete, args)

    def effective(self, options: CompilerT | None) -> CompilerT:
        """``options`` over the defaults."""
        defaults = self.default_compiler_options
        return defaults if options is None else options.over(defaults)

    def forget_includes(self) -> None:
        """Read tracked headers, hooks and link inputs anew; kernels in memory stay.

        Compiling something new does so anyway: a key always stands for what was compiled.
        """
        self._compiler.forget()
        self._names.clear()

    def _name(self, tag: str, source: str, options: CompilerT | None) -> str:
        if not isinstance(tag, str):
            raise bad_type("tag", tag, "str")
        if not _TAG.fullmatch(tag):
            nearest = re.sub(r"[^A-Za-z0-9_]", "_", tag)[:MAX_TAG] or "kernel"
            raise bad_value("cache tag must contain only A-Z a-z 0-9 _", tag, "such", nearest)
        if len(tag) > MAX_TAG:
            raise bad_value("cache tag", tag, f"at most {MAX_TAG} characters", tag[:MAX_TAG])
        if not isinstance(source, str):
            raise bad_type("source", source, "str")
        return f"{tag}.{self.cache_key(source, options)}"

    def _load(self, name: str, source: str, options: CompilerT, attempts: int = 3) -> Kernel:
        entry = self._compiler.entry(name, source, options)
        path = entry.directory / self.backend.artifact(options)
        start = time.perf_counter()
        try:
            image = entry.read(path.name)
            module, symbol = self.backend.load(path, image, options)
        except (LoadError, Damage, OSError) as error:
            # Pruned or replaced between proof and loading: build it again.
            if attempts > 1 and not entry.is_sound():
                return self._load(name, source, options, attempts - 1)
            if isinstance(error, LoadError):
                raise
            raise LoadError(f"{path}: {error}") from error
        if self._live.flag("JIT_PRINT_LOAD_TIME"):
            elapsed_ms = (time.perf_counter() - start) * 1e3
            report(f"loaded {name} in {elapsed_ms:.3f} ms")
        return Kernel(name, path, module, symbol)

    def after_fork(self) -> None:
        """In a forked child: other threads' work is gone, and so are a device's handles."""
        if self.backend.fork_safe:
            self._kernels.abandon_flights()
        else:
            self._kernels.reset()
