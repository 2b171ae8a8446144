"""Exit codes of the commands run, check, lint, fits and advise: the same in all (``HELP``).

What could not be judged is what the emulator does not have, or this host: no fault of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

CLEAN, FINDINGS, CANNOT_JUDGE = 0, 1, 2
HELP = """exit codes of run, check, lint, fits and advise:
  0  clean
  1  findings: of severity error; a memory that does not hold the kernel (fits); synchronisation
     that nothing needs (advise)
  2  wrong usage, or it could not be judged: the message says why
"""
_NOT_THE_KERNEL = ("AK-SETUP", "AK-UNSUPPORTED", "AK-CONTROL")
"""Families of codes that say nothing of the kernel."""


def of_findings(findings: Iterable[Any], *, ended: bool = True) -> int:
    """The exit code of findings; ``ended``: the launch did."""
    errors = [f.code for f in findings if f.severity == "error"]
    if any(not code.startswith(_NOT_THE_KERNEL) for code in errors):
        return FINDINGS
    return CLEAN if ended and not errors else CANNOT_JUDGE


def of_error(error: Any) -> int:
    """The exit code of an EmulatorError."""
    return CANNOT_JUDGE if error.code.startswith(_NOT_THE_KERNEL) else FINDINGS
