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

_VERSION = re.compile(r"(?:gcc|(?P<clang>clang)) version (\d+)\.(\d+)")
_TARGET = re.compile(r"Target: (\S+)")
_TELLING = ("gcc version", "Target:", "Configured with:", "Thread model:")
"""Beginnings of the lines of ``-v`` that tell compilers apart and name no path of this machine."""


def find(environment: Environment, chosen: str = "") -> Toolkit:
    """The compiler: ``chosen``, else JIT_HOST_COMPILER, else the first of g++, clang++, c++.

    Raises:
        ToolkitError: none, not executable, unreadable version, or too old for C++20.
    """
    path = _locate(environment, chosen)
    rows = _ask(path, environment.variables).splitlines()
    version = next((row for row in rows if _VERSION.search(row)), "")
    match = _VERSION.search(version)
    target = next((found.group(1) for row in rows if (found := _TARGET.match(row))), "")
    if match is None or not target:
        shown = rows[0] if rows else "nothing"
        raise ToolkitError(f"failed to parse the compiler version of {path} -v: got {shown!r}")
    family = "clang" if match.group("clang") else "gcc"
    if (int(match.group(2)), int(match.group(3))) < OLDEST[family]:
        wanted = ".".join(map(str, OLDEST[family]))
        raise ToolkitError(f"{path}: {match.group()} found, must be at least {wanted}")
    telling = [row for row in rows if row == version or row.startswith(_TELLING)]
    bent = [
        f"{name}={environment.variables[name]}"
        for name in BENDING
        if environment.variables.get(name)
    ]
    return Toolkit(
        path=path,
        identity=("\n".join(telling), *bent),
        info={"path": str(path), "version": version, "target": target, "family": family},
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


def _ask(path: Path, variables: Mapping[str, str]) -> str:
    try:
        return command.run([str(path), "-v"], env={**variables, "LC_ALL": "C"})
    except CommandError as error:
        raise ToolkitError(f"{path}: {error}") from error
