"""What can go wrong between a kernel's text and its launch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

TAIL_LINES = 40
"""Lines of a program's output that an error message shows; ``CommandError.output`` has them all."""


class JitError(RuntimeError):
    """Base of every error of ``ascendkit.jit`` that is not a plain ValueError or TypeError."""


class ToolkitError(JitError):
    """No usable compiler: not found, not executable, unreadable version, or too old."""


class CacheError(JitError):
    """A cache root cannot be read or written."""


class LoadError(JitError):
    """A compiled artifact cannot be loaded, or does not hold exactly one kernel."""


class LaunchError(JitError):
    """A kernel cannot be launched in the state it is in."""


class IncludeError(JitError, ValueError):
    """A tracked include is missing, circular, or not written as ``<name>``."""


class CommandError(JitError):
    """A program ended with a non-zero status (128 + signal when a signal ended it)."""

    def __init__(self, command: Sequence[str], returncode: int, output: str) -> None:
        super().__init__(command, returncode, output)
        self.command = tuple(command)
        self.returncode = returncode
        self.output = output

    def __str__(self) -> str:
        return f"command failed with exit code {self.returncode}\n{_evidence(self)}"


class CompileError(JitError):
    """A kernel did not compile. Carries the kernel's name, the command and its whole output."""

    def __init__(
        self, kernel: str, problem: str, command: Sequence[str] = (), output: str = ""
    ) -> None:
        super().__init__(kernel, problem, command, output)
        self.kernel = kernel
        self.problem = problem
        self.command = tuple(command)
        self.output = output

    def __str__(self) -> str:
        return f"kernel {self.kernel!r}: {self.problem}\n{_evidence(self)}".rstrip()


def tail(output: str, lines: int = TAIL_LINES) -> str:
    """The last ``lines`` lines of ``output``, with a note of how many came before."""
    rows = output.rstrip().splitlines()
    if len(rows) <= lines:
        return "\n".join(rows)
    return "\n".join([f"... {len(rows) - lines} lines before", *rows[-lines:]])


def _evidence(error: CommandError | CompileError) -> str:
    rows = []
    if error.command:
        rows.append(f"command: {shlex.join(error.command)}")
    if error.output.strip():
        rows.append(f"output:\n{tail(error.output)}")
    return "\n".join(rows)
