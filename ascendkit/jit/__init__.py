"""Compile kernels at run time, keep them for ever, load and launch them.

The counterpart of DeepJIT: one runtime a library, one backend a kind of machine. Importing this
package looks for no compiler and touches no disk.
"""

from __future__ import annotations

from pathlib import Path

from ascendkit.jit.backend import Backend, Job, Module, Toolkit
from ascendkit.jit.config import Config
from ascendkit.jit.digest import Fnv, digest
from ascendkit.jit.errors import (
    CacheError,
    CommandError,
    CompileError,
    IncludeError,
    JitError,
    LaunchError,
    LoadError,
    ToolkitError,
)
from ascendkit.jit.host import HostBackend
from ascendkit.jit.host_options import HostLaunchOptions, HostOptions
from ascendkit.jit.kernel import Kernel
from ascendkit.jit.lazy import LazyInit
from ascendkit.jit.options import UNSET, CompilerOptions, LaunchOptions
from ascendkit.jit.runtime import Runtime

__all__ = [
    "UNSET",
    "Backend",
    "CacheError",
    "CommandError",
    "CompileError",
    "CompilerOptions",
    "Config",
    "Fnv",
    "HostBackend",
    "HostLaunchOptions",
    "HostOptions",
    "IncludeError",
    "JitError",
    "Job",
    "Kernel",
    "LaunchError",
    "LaunchOptions",
    "LazyInit",
    "LoadError",
    "Module",
    "Runtime",
    "Toolkit",
    "ToolkitError",
    "digest",
    "get_jit",
    "shared_runtime",
]

shared_runtime: LazyInit[Runtime[HostOptions, HostLaunchOptions]] = LazyInit(
    lambda: Runtime(
        HostBackend(),
        Config(
            library_root=Path(__file__).resolve().parent.parent,
            env_prefix="ASCENDKIT",
        ),
    )
)
"""The runtime ``get_jit`` returns; ``set`` another factory to change it."""


def get_jit() -> Runtime[HostOptions, HostLaunchOptions]:
    """ascendkit's own host runtime, made on first use."""
    return shared_runtime.get()
