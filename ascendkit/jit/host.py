"""The host backend: C++ by g++ or clang++ into a shared object, called through ctypes."""

from __future__ import annotations

import _ctypes
import ctypes
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.jit import host_toolkit
from ascendkit.jit.arguments import Value, as_ctypes, check_by_value
from ascendkit.jit.backend import Job, Module, Toolkit
from ascendkit.jit.elf import RELOCATABLE, SHARED, Elf
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import LaunchError, LoadError
from ascendkit.jit.files import read_file
from ascendkit.jit.host_options import ARTIFACTS, HostLaunchOptions, HostOptions

KERNEL_SECTION = "ascendkit_kernel"
KERNEL_MACRO = (
    '-DASCENDKIT_KERNEL=extern "C" __attribute__((used, visibility("default"), '
    f'section("{KERNEL_SECTION}")))'
)
"""Marks a function as a kernel: exported by its plain name, in the section that is counted."""

DEFAULT_FLAGS = ("-fPIC", "-fvisibility=hidden", "-Wall")
DEFAULT_LINK_FLAGS = ("-Wl,-z,defs",)
"""Every symbol must be found when linking: a missing one is a compile error, not a crash later."""


class HostModule:
    """A shared object in this process. It is closed when nothing refers to its functions."""

    def __init__(self, path: Path, needed: Sequence[Path]) -> None:
        # Libraries come first: a kernel names them by soname, so the cache folder may move.
        self._needed = [_open(library) for library in needed]
        self._library: ctypes.CDLL | None = _open(path)
        self._path = path

    def symbol(self, name: str) -> Any:
        """The exported function ``name``."""
        if self._library is None:
            raise LaunchError(f"{self._path} must be loaded before launch")
        try:
            return self._library[name]
        except AttributeError as error:
            raise LoadError(f"{self._path} exports no {name!r}") from error

    def call(self, name: str, args: Sequence[object]) -> Any:
        """Call ``name``, arguments converted by ``as_ctypes``; returns its C int."""
        return self.symbol(name)(*_by_register(args))

    def close(self) -> None:
        """Drop the library; functions handed out keep it alive."""
        self._library = None
        self._needed = []


class HostBackend:
    """Compiles and runs kernels on this machine's CPU.

    A kernel for ``Runtime.launch`` is ``ASCENDKIT_KERNEL void f(uint32_t block_idx, uint32_t
    num_blocks, ...)`` and runs once a block. One called directly may have any C signature.

    Args:
        compiler: name or path of g++ or clang++; default: JIT_HOST_COMPILER, else from PATH.
    """

    name = "host"
    source_file = "kernel.cpp"
    options_type = HostOptions
    fork_safe = True

    def __init__(self, compiler: str = "") -> None:
        self.compiler = compiler

    def arguments(self) -> dict[str, object]:
        """The chosen compiler."""
        return {"compiler": self.compiler}

    def find_toolkit(self, environment: Environment) -> Toolkit:
        """See ``host_toolkit.find``."""
        return host_toolkit.find(environment, self.compiler)

    def default_options(self, environment: Environment) -> HostOptions:
        """C++20 at -O2, as the environment modifies it."""
        debug = environment.flag("JIT_DEBUG")
        return HostOptions(
            post_hook="",
            output="kernel",
            standard=environment.integer("JIT_CPP_STANDARD", 20, low=17, high=23),
            optimize_level="2",
            debug_info=environment.flag("JIT_KERNEL_DEBUG_INFO", debug),
            dump_asm=environment.flag("JIT_DUMP_ASM", debug),
            flags=DEFAULT_FLAGS,
            extra_flags=(),
            link_flags=DEFAULT_LINK_FLAGS,
            extra_link_flags=(),
            link_inputs=(),
        )

    def default_launch(self, environment: Environment) -> HostLaunchOptions:
        """One thread; the number of blocks has no default."""
        return HostLaunchOptions(num_threads=1)

    def artifact(self, options: HostOptions) -> str:
        """``kernel.so``, ``library.so`` or ``object.o``."""
        return ARTIFACTS[options.output]

    def flags(self, options: HostOptions, toolkit: Toolkit) -> tuple[tuple[str, ...], ...]:
        """Compiler flags, linker flags, and what "native" stands for in them."""
        compiling = [f"-std=c++{options.standard}", f"-O{options.optimize_level}"]
        if options.debug_info:
            compiling.append("-g")
        if toolkit.info["family"] == "gcc":
            # Unique symbols would be shared by all kernels of the process and forbid unloading.
            compiling += ["-fno-gnu-unique", "-frandom-seed=ascendkit"]
        compiling += [KERNEL_MACRO, *options.flags, *options.extra_flags]
        if options.output == "object":
            return tuple(compiling), ("-c",), _native(compiling)
        linking = ["-shared", *options.link_flags, *options.extra_link_flags]
        if options.output == "library":
            linking.append("-Wl,-z,nodelete")
        return tuple(compiling), tuple(linking), _native(compiling)

    def inputs(self, options: HostOptions) -> tuple[Path, ...]:
        """The link inputs."""
        return options.link_inputs

    def compile(self, job: Job[HostOptions]) -> None:
        """One compiler run, two with ``dump_asm``."""
        options = job.options
        compiling, linking, _ = self.flags(options, job.toolkit)
        head = [str(job.toolkit.path), *compiling]
        if options.debug_info:
            head.append(f"-ffile-prefix-map={job.directory}=.")
        for folder in job.include_dirs:
            head += ["-I", str(folder)]
        if options.dump_asm:
            job.run([*head, "-S", self.source_file, "-o", "kernel.s"])
        artifact = self.artifact(options)
        command = [*head, self.source_file, *map(str, options.link_inputs), *linking]
        if options.output == "library":
            command.append(f"-Wl,-soname,{job.name}.so")
        output = job.run([*command, "-o", artifact])
        wanted = RELOCATABLE if options.output == "object" else SHARED
        if not _is_elf(job.directory / artifact, wanted):
            raise job.fail(f"the compiler did not produce a valid {artifact}", output)

    def load(self, artifact: Path, options: HostOptions) -> tuple[Module, str]:
        """Open the shared object and find its kernel."""
        entry = ""
        if options.output == "object":
            raise LoadError(f"{artifact} is an object file: use compile_without_load and link it")
        if options.output == "kernel":
            try:
                found = Elf(read_file(artifact)).functions(KERNEL_SECTION)
            except ValueError as error:
                raise LoadError(f"{artifact}: {error}") from error
            if len(found) != 1:
                names = f" ({', '.join(found)})" if found else ": mark it with ASCENDKIT_KERNEL"
                raise LoadError(
                    f"{artifact}: expected exactly one kernel, found {len(found)}{names}"
                )
            entry = found[0]
        needed = [path for path in options.link_inputs if _is_elf(path, SHARED)]
        return HostModule(artifact, needed), entry

    def launch(
        self, module: Module, entry: str, options: HostLaunchOptions, args: Sequence[object]
    ) -> None:
        """Call ``entry(block_idx, num_blocks, *args)`` for every block; returns after the last."""
        function: Any = module.symbol(entry)
        values = _by_register(args)
        total = ctypes.c_uint32(options.num_blocks)

        def run(first: int) -> None:
            for block in range(first, options.num_blocks, options.num_threads):
                function(ctypes.c_uint32(block), total, *values)

        if options.num_threads == 1:
            run(0)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(options.num_threads) as pool:
            list(pool.map(run, range(options.num_threads)))


def _by_register(args: Sequence[object]) -> list[Value]:
    return [check_by_value(as_ctypes(arg)) for arg in args]


def _native(flags: Sequence[str]) -> tuple[str, ...]:
    native = any(flag.startswith("-m") and flag.endswith("=native") for flag in flags)
    return (host_toolkit.cpu_identity(),) if native else ()


def _open(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise LoadError(f"cannot load {path}: {error}") from error
    # Code may run in other threads when the interpreter ends, so it is not unmapped then.
    weakref.finalize(library, _ctypes.dlclose, library._handle).atexit = False
    return library


def _is_elf(path: Path, kind: int) -> bool:
    try:
        return Elf(read_file(path)).type == kind
    except (OSError, ValueError):
        return False
