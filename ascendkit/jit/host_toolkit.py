"""Find this machine's C++ compiler and tell it from others."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ascendkit.jit import command
from ascendkit.jit.backend import Toolkit
from ascendkit.jit.environment import Environment
from ascendkit.jit.errors import CommandError, ToolkitError
from ascendkit.jit.files import is_executable

CANDIDATES = ("g++", "clang++", "c++")
OLDEST = {"gcc": (10, 0), "clang": (10, 0)}
"""First releases that know ``-std=c++20``."""

BENDING = (
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "CCC_OVERRIDE_OPTIONS",
    "SOURCE_DATE_EPOCH",
)
"""Variables that change what a compiler makes of a command; they are part of its identity."""

_VERSION = re.compile(r"\b(\d+)\.(\d+)(?:\.\d+)?\b")


def find(environment: Environment, chosen: str = "") -> Toolkit:
    """The compiler: ``chosen``, else JIT_HOST_COMPILER, else the first of g++, clang++, c++.

    Raises:
        ToolkitError: none, not executable, unreadable version, or too old for C++20.
    """
    path = _locate(environment, chosen)
    text = _ask(path, "--version", environment.variables)
    first = text.splitlines()[0] if text.strip() else ""
    match = _VERSION.search(first)
    if match is None:
        raise ToolkitError(f"failed to parse the compiler version of {path}: got {first!r}")
    family = "clang" if "clang" in text.lower() else "gcc"
    version = (int(match.group(1)), int(match.group(2)))
    if version < OLDEST[family]:
        wanted = ".".join(map(str, OLDEST[family]))
        raise ToolkitError(f"{path}: {family} {match.group()} found, must be at least {wanted}")
    target = _ask(path, "-dumpmachine", environment.variables).strip()
    bent = [
        f"{name}={environment.variables[name]}"
        for name in BENDING
        if environment.variables.get(name)
    ]
    return Toolkit(
        path=path,
        identity=(text, target, *bent),
        info={"path": str(path), "version": first, "target": target, "family": family},
        arch=target.partition("-")[0],
    )


def cpu_identity() -> str:
    """What ``-march=native`` means here: the CPU's model and features."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return " ".join(os.uname())
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return "\n".join(row for row in first.splitlines() if row.startswith(wanted))


def _locate(environment: Environment, chosen: str) -> Path:
    import shutil

    search = environment.variables.get("PATH", os.defpath)
    found = environment.find("JIT_HOST_COMPILER")
    source, value = ("HostBackend(compiler=...)", chosen) if chosen else found or ("", "")
    if source:
        path = shutil.which(value, path=search) if value else None
        if path is None or not is_executable(Path(path)):
            raise ToolkitError(f"{source}: {value!r} is not executable or not on PATH")
        return Path(os.path.abspath(path))
    for name in CANDIDATES:
        path = shutil.which(name, path=search)
        if path is not None:
            return Path(os.path.abspath(path))
    raise ToolkitError(
        f"no C++ compiler: none of {', '.join(CANDIDATES)} is on PATH; install g++ 10 or later,"
        f" or set {environment.prefix}_JIT_HOST_COMPILER"
    )


def _ask(path: Path, question: str, variables: Mapping[str, str]) -> str:
    try:
        return command.run([str(path), question], env={**variables, "LC_ALL": "C"})
    except CommandError as error:
        raise ToolkitError(f"{path} {question}: {error}") from error
