"""Where an op runs: the four platforms, how one is chosen, and what this machine can do.

A platform is chosen by ``platform=``, else by the innermost ``with ascendkit.use(...)``, else by
the ``ASCENDKIT_PLATFORM`` variable, else by the device of the tensors. A platform that was asked
for and cannot serve raises with its reason: there is no silent fall-back.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache

from ascendkit import cann
from ascendkit.errors import unknown

PLATFORMS = ("reference", "emulator", "ascend", "cuda")
"""reference: torch on the CPU; emulator: Ascend 950 on this CPU; ascend: an NPU; cuda: a GPU."""

BACKENDS = ("mpi", "gloo", "nccl", "hccl")
"""Second axis of collective ops: who moves the bytes."""

_by_device = {"cpu": "reference", "cuda": "cuda", "npu": "ascend", "meta": "reference"}
_chosen: ContextVar[str | None] = ContextVar("ascendkit_platform", default=None)


def check(name: str) -> str:
    """Return ``name`` if it is a platform, else raise ValueError naming the nearest."""
    if name not in PLATFORMS:
        raise unknown("platform", name, PLATFORMS)
    return name


@contextmanager
def use(name: str, *, check: bool | None = None) -> Iterator[None]:
    """Run every op inside the block on platform ``name``.

    ``check`` (emulator only) runs the judges at every launch.

    Raises ValueError for an unknown name and RuntimeError where the platform cannot run here.
    """
    state = available(name)
    if not state:
        raise RuntimeError(f"platform {name!r} cannot run here: {state.reason}")
    token = _chosen.set(name)
    try:
        if name == "emulator":
            # Imported here: the emulator is large and only this branch needs it.
            from ascendkit.emulator import active

            with active(check=check):
                yield
        else:
            yield
    finally:
        _chosen.reset(token)


def current(device_type: str | None = None, platform: str | None = None) -> str:
    """The platform an op with tensors on ``device_type`` runs on.

    Args:
        device_type: ``tensor.device.type`` (``cpu``, ``cuda``, ``npu``) or None when there is none.
        platform: an explicit choice of the caller.
    """
    chosen = platform or _chosen.get() or os.environ.get("ASCENDKIT_PLATFORM")
    if chosen:
        return check(chosen)
    return _by_device.get(device_type or "cpu", "reference")


@dataclass(frozen=True)
class Available:
    """Whether a platform can run on this machine, and why not."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def available(name: str) -> Available:
    """Probe one platform. Cheap where it can be: no toolkit is imported to say no."""
    probe = {
        "reference": _reference,
        "emulator": _emulator,
        "ascend": _ascend,
        "cuda": _cuda,
    }[check(name)]
    return probe()


def _missing(*modules: str) -> str:
    gone = [m for m in modules if importlib.util.find_spec(m) is None]
    return f"{', '.join(gone)} not installed" if gone else ""


@cache
def _fails_to_load(*modules: str) -> str:
    """Why one of ``modules`` cannot be imported, or "". Tried once: torch cannot be tried twice."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as e:
            # ImportError, OSError and RuntimeError were all seen, by what is missing.
            first = (str(e).strip().splitlines() or [""])[0]
            return f"{module} does not load: {type(e).__name__}: {first}"
    return ""


def _reference() -> Available:
    reason = _missing("torch")
    return Available(not reason, reason and f"{reason} (pip install -e '.[torch]')")


def _emulator() -> Available:
    if importlib.util.find_spec("ascendkit.emulator") is None:
        return Available(False, "this build carries no emulator")
    reason = _missing("torch", "tilelang")
    if reason:
        return Available(False, f"{reason} (pip install -e '.[emu]')")
    if not any(shutil.which(c) for c in ("g++", "clang++")):
        return Available(False, "no C++ compiler (g++ or clang++) on PATH")
    return Available(True)


def _ascend() -> Available:
    reason = _missing("torch", "torch_npu")
    if reason:
        return Available(False, f"{reason} (pip install -e '.[npu]')")
    if "torch_npu" not in sys.modules and not cann.found():
        return Available(
            False,
            f"torch_npu is installed, but CANN is not: the loader does not find {cann.LIBRARY} "
            "(source CANN's set_env.sh first)",
        )
    reason = _fails_to_load("torch", "torch_npu")
    if reason:
        return Available(False, reason)
    import torch

    if not torch.npu.is_available():
        return Available(False, "torch_npu loads, but no NPU is visible")
    return Available(True)


def _cuda() -> Available:
    reason = _missing("torch", "tilelang")
    if reason:
        return Available(False, f"{reason} (pip install -e '.[cuda]')")
    reason = _fails_to_load("torch")
    if reason:
        return Available(False, reason)
    import torch

    if not torch.cuda.is_available():
        built = torch.version.cuda
        return Available(
            False, "no CUDA device is visible" if built else "torch is built without CUDA"
        )
    return Available(True)
