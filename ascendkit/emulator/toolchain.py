"""Compiling the runtime once per compiler, and each kernel as a thin unit against it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ascendkit.emulator import parts, source
from ascendkit.emulator.errors import EmulatorError, SourceError
from ascendkit.jit import (
    CompileError,
    Config,
    HostBackend,
    HostLaunchOptions,
    HostOptions,
    Kernel,
    Runtime,
)

HERE = Path(__file__).resolve().parent
RUNTIME_FILES = [
    "fiber",
    "memory",
    "pipes",
    "mutate",
    "sync",
    "stuck",
    "scheduler",
    "fault",
    "deadline",
    "record",
    "raw",
    "judge/finding",
    "judge/judge",
    "judge/order",
    "judge/signals",
    "judge/across",
    "judge/race",
    "judge/race_told",
    "judge/blocks",
    "judge/cached_lines",
    "judge/threads",
    "judge/journal",
    "judge/tensors",
    "judge/form",
    "judge/look",
    "judge/look_global",
    "judge/look_matrix",
    "judge/bursts",
    "judge/memory",
    "core",
    "gm_write",
    "copy",
    "l0",
    "mmad",
    "fixpipe",
    "simt",
    "helpers",
    "launch",
]
_PREFIXES = (
    *("acl/", "adv_api/", "ak/", "c_api/", "kernel_operator", "runtime/", "simt_api/"),
    "tl_templates/",
)
# Registers are reinterpreted as other lane types.
COMMON_FLAGS = (
    "-march=native",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fwrapv",
    "-g1",
    "-Wno-unknown-pragmas",
    "-Wno-unused",
)


@cache
def template_root() -> Path:
    """Folder that holds ``tl_templates`` of the installed TileLang wheel (used in place)."""
    spec = importlib.util.find_spec("tilelang")
    if spec is None or not spec.submodule_search_locations:
        raise EmulatorError("AK-SETUP-001", "tilelang is not installed (pip install -e '.[emu]')")
    root = Path(spec.submodule_search_locations[0]) / "src"
    if not (root / "tl_templates" / "ascend" / "common.h").exists():
        raise EmulatorError("AK-SETUP-001", "this tilelang has no Ascend backend, wanted 0.1.15")
    return root


@cache
def _jit() -> Runtime[HostOptions, HostLaunchOptions]:
    return Runtime(
        HostBackend(),
        Config(
            library_root=HERE,
            env_prefix="ASCENDKIT",
            include_dirs=(HERE / "include", HERE, template_root()),
            include_prefixes=_PREFIXES,
            quoted_includes="track",
        ),
    )


def compiler_path() -> Path:
    """The host compiler in use."""
    return _jit().toolkit.path


def cache_root() -> Path:
    """Folder of compiled kernels and of everything else worth keeping."""
    return _jit().disk.roots[0]


@cache
def runtime() -> Kernel:
    """The precompiled runtime library."""
    text = "".join(f'#include "runtime/{name}.cc"\n' for name in RUNTIME_FILES)
    flags = (*COMMON_FLAGS, "-ffp-contract=off")
    options = HostOptions(output="library", optimize_level="3", extra_flags=flags)
    return _compile("emulator_runtime", text, options)


def compile_kernel(text: str, kernel: source.Kernel, *, trace: bool, raw: bool = False) -> Kernel:
    """Compile one kernel of ``text``.

    ``trace`` chooses the build whose instructions report themselves; with ``raw``, scalar and SIMT
    code reports its loads and stores as well (runtime/raw.cc).
    """
    # Scalar and SIMT code contracts a * b + c into one rounding, as the device compiler does:
    # TileKernels' division-residual corrections are only right that way.
    flags = (*COMMON_FLAGS, "-ffp-contract=fast", *(("-DAK_TRACE",) if trace else ()))
    # Debug information makes the loader map the file by name, which a fault's line needs; -g1 of
    # the common flags keeps it to line tables.
    options = HostOptions(
        output="kernel",
        optimize_level="2",
        debug_info=True,
        extra_flags=flags,
        link_inputs=(runtime().path,),
    )
    try:
        if not raw:
            return _compile(kernel.name, source.rewrite(text, kernel, trace=trace), options)
        # The vector part comes first: of functions both have, the linker takes its plain ones.
        scalar = _raw_object(parts.scalar(text), kernel, options)
        vector = ""
        if parts.has_vector(text):
            vector = source.rewrite(parts.vector(text), kernel, trace=True, entry=False)
        options = replace(options, link_inputs=(scalar, runtime().path))
        return _compile(kernel.name, vector, options)
    except CompileError as error:
        raise _explained(error) from error


def _raw_object(text: str, kernel: source.Kernel, options: HostOptions) -> Path:
    """The object whose loads and stores call the hooks of runtime/raw.cc."""
    unit = source.rewrite(text, kernel, trace=True, raw=True)
    flags = (*options.extra_flags, "-fsanitize=thread")
    if _jit().toolkit.info["family"] == "gcc":
        flags += ("--param=tsan-instrument-func-entry-exit=0",)
    options = replace(options, output="object", extra_flags=flags, link_inputs=())
    return _jit().compile_without_load(kernel.name, unit, options) / "object.o"


def _compile(tag: str, text: str, options: HostOptions) -> Kernel:
    return _jit().compile(tag, text, options)


def _explained(error: CompileError) -> EmulatorError:
    """Name the instruction the emulator does not know, if that is what went wrong."""
    import re

    for pattern in (
        r"['‘](\w+)['’] was not declared",
        r"['‘](\w+)['’] has not been declared",
        r"undeclared identifier '(\w+)'",
        r"['‘](\w+)['’] is not a member of",
        r"no matching function for call to ['‘](\w+)\(",
    ):
        match = re.search(pattern, error.output)
        if match:
            message = (
                f"{match.group(1)} is unknown to the emulator, or has no form for these operand "
                "types; the compiler says more:\n"
            )
            return SourceError(message + _first_error(error.output), "AK-SOURCE-002")
    return SourceError("the kernel does not compile:\n" + str(error), "AK-SOURCE-003")


def _first_error(output: str) -> str:
    rows = output.splitlines()
    at = next((i for i, row in enumerate(rows) if " error: " in row), 0)
    return "\n".join(rows[at : at + 4])


def symbol(name: str) -> Any:
    """A C function of the runtime."""
    return runtime().symbol(name)
