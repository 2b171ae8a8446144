"""The host backend: C++ by g++ or clang++ into a shared object, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.jit import host_module, host_toolkit
from ascendkit.jit.backend import Job, Module, Toolkit
from ascendkit.jit.elf import RELOCATABLE, SHARED, Elf
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import LoadError
from ascendkit.jit.files import read_file
from ascendkit.jit.host_options import ARTIFACTS, HostLaunchOptions, HostOptions

KERNEL_SECTION = "ascendkit_kernel"
KERNEL_MACRO = (
    '-DASCENDKIT_KERNEL=extern "C" __attribute__((used, visibility("default"), '
    f'section("{KERNEL_SECTION}")))'
)
"""Marks a function as a kernel: exported by its plain name, in the section that is counted."""

DEFAULT_FLAGS = ("-fPIC", "-fvisibility=hidden")
DEFAULT_LINK_FLAGS = ("-Wl,-z,defs",)
"""Every symbol must be found when linking: a missing one is a compile error, not a crash later."""


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
        # Line tables must not name the temporary folder: the artifact would differ by builder.
        here = f"-ffile-prefix-map={job.directory}=."
        head = [str(job.toolkit.path), *compiling, here]
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

    def load(self, artifact: Path, image: bytes, options: HostOptions) -> tuple[Module, str]:
        """Find the kernel and load the shared object; with debug information, from its file."""
        entry = ""
        if options.output == "object":
            raise LoadError(f"{artifact} is an object file: use compile_without_load and link it")
        if options.output == "kernel":
            try:
                found = Elf(image).functions(KERNEL_SECTION)
            except ValueError as error:
                raise LoadError(f"{artifact}: {error}") from error
            if len(found) != 1:
                names = f" ({', '.join(found)})" if found else ": mark it with ASCENDKIT_KERNEL"
                raise LoadError(
                    f"{artifact}: expected exactly one kernel, found {len(found)}{names}"
                )
            entry = found[0]
        needed = options.link_inputs
        return host_module.load(artifact, image, needed, by_path=options.debug_info), entry

    def launch(
        self, module: Module, entry: str, options: HostLaunchOptions, args: Sequence[object]
    ) -> None:
        """Call ``entry(block_idx, num_blocks, *args)`` for every block; returns after the last."""
        function: Any = module.symbol(entry)
        values = host_module.convert(args)
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


def _native(flags: Sequence[str]) -> tuple[str, ...]:
    native = any(flag.startswith("-m") and flag.endswith("=native") for flag in flags)
    return (host_toolkit.cpu_identity(),) if native else ()


def _is_elf(path: Path, kind: int) -> bool:
    try:
        return Elf(read_file(path)).type == kind
    except (OSError, ValueError):
        return False
