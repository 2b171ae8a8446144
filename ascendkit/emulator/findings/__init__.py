"""Findings: what the emulator has to say about a kernel, with a code, two source lines and a cure.

``check(kernel, *args)`` runs a kernel with all judges; ``fits`` and ``lint`` need no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascendkit.emulator.findings.checking import CheckResult, FindingsError, check
    from ascendkit.emulator.findings.codes import Code, codes
    from ascendkit.emulator.findings.finding import Finding, Point

_HOME = {
    "CheckResult": "checking",
    "Code": "codes",
    "Finding": "finding",
    "FindingsError": "checking",
    "Point": "finding",
    "check": "checking",
    "codes": "codes",
}

__all__ = ["CheckResult", "Code", "Finding", "FindingsError", "Point", "check", "codes"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # ``codes`` is a module and a function of it: the function is what is asked for.
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
