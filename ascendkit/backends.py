"""Who can move bytes between ranks here: mpi, gloo, nccl, hccl."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from ascendkit.errors import unknown
from ascendkit.platform import BACKENDS, Available, available


def mpiexec() -> str | None:
    """The launcher of this environment, else the first on PATH: it must match the MPI library."""
    beside = Path(sys.executable).parent
    return shutil.which("mpiexec", path=os.pathsep.join((str(beside), os.environ.get("PATH", ""))))


def backend_available(name: str) -> Available:
    """Whether a backend can run here, and why not; ValueError naming the nearest."""
    if name not in BACKENDS:
        raise unknown("backend", name, BACKENDS)
    return {"mpi": _mpi, "gloo": _gloo, "nccl": _nccl, "hccl": _hccl}[name]()


def _mpi() -> Available:
    if importlib.util.find_spec("mpi4py") is None:
        return Available(False, "mpi4py not installed (pip install -e '.[mpi]')")
    if mpiexec() is None:
        return Available(False, "no mpiexec beside this Python or on PATH (pip install mpich)")
    return Available(True)


def _gloo() -> Available:
    state = available("reference")
    if not state:
        return state
    import torch.distributed

    if not torch.distributed.is_gloo_available():
        return Available(False, "torch is built without gloo")
    return Available(True)


def _nccl() -> Available:
    state = available("cuda")
    if not state:
        return state
    import torch.distributed

    if not torch.distributed.is_nccl_available():
        return Available(False, "torch is built without NCCL")
    return Available(True)


def _hccl() -> Available:
    # HCCL comes with torch_npu: where the platform runs, the backend does.
    return available("ascend")
