"""An Ascend 950 on this CPU: runs the AscendC that TileLang generates, without CANN or an NPU.

Three ways in: ``with ascendkit.use("emulator"):`` around any ``@tilelang.jit`` Ascend kernel,
``run(source_or_kernel, *args)``, and ``python -m ascendkit.emulator run FILE.asc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascendkit.emulator.errors import EmulatorError, SourceError
    from ascendkit.emulator.findings.checking import CheckResult, check
    from ascendkit.emulator.hook import active
    from ascendkit.emulator.kernel import EmulatedKernel, Run
    from ascendkit.emulator.npu import as_npu
    from ascendkit.emulator.running import run

_HOME = {
    "CheckResult": "findings.checking",
    "EmulatedKernel": "kernel",
    "EmulatorError": "errors",
    "Run": "kernel",
    "SourceError": "errors",
    "active": "hook",
    "as_npu": "npu",
    "check": "findings.checking",
    "run": "running",
}

__all__ = [
    "CheckResult",
    "EmulatedKernel",
    "EmulatorError",
    "Run",
    "SourceError",
    "active",
    "as_npu",
    "check",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
