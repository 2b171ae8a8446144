"""What the machine is: Python, processor, compilers, and the devices its drivers show."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ascendkit import cann
from ascendkit.backends import mpiexec
from ascendkit.bench.environment import device_name
from ascendkit.data import table
from ascendkit.hardware import device
from ascendkit.platform import available


def facts() -> list[tuple[str, str]]:
    """(what, found) of the host; looks at files and asks compilers for their version."""
    return [
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("processor", f"{device_name('cpu')}, {cores()} cores for this process"),
        ("memory", _memory()),
        ("C++ compiler", _version_of("g++", "clang++")),
        ("CUDA compiler", _version_of("nvcc")),
        ("Ascend compiler", _version_of("bisheng")),
        ("CANN libraries", "found" if cann.found() else f"not found ({cann.LIBRARY})"),
        ("MPI launcher", mpiexec() or "not found"),
    ]


def devices() -> list[tuple[str, str, str]]:
    """(platform, device, architecture) of every device that can be seen or emulated."""
    rows = [("cuda", name, arch) for name, arch in _nvidia()]
    rows += [("ascend", name, arch_of(name) or "unknown") for name in _ascend()]
    if available("emulator"):
        emulated = device("ascend_950pr").title
        rows.append(
            ("emulator", f"{emulated}, emulated on this CPU", arch_of(emulated) or "unknown")
        )
    return rows


def aliases() -> list[tuple[str, ...]]:
    """(generation, also called, SoC names begin with, architecture, compiler flag), a row each."""
    rows: list[tuple[str, ...]] = []
    for arch, leaves in table("socs")["archs"].items():
        value = {name: leaf["value"] for name, leaf in leaves.items()}
        rows.append(
            (
                ", ".join(value["generations"]),
                ", ".join(value["names"]),
                ", ".join(value["soc_prefixes"]),
                arch,
                value["flag"] or "unknown",
            )
        )
    return rows


def arch_of(soc: str) -> str | None:
    """``dav-...`` of a SoC name (``Ascend950PR_9579``), or None where no row of the table fits."""
    folded = _folded(soc)
    for arch, leaves in table("socs")["archs"].items():
        names = (*leaves["soc_prefixes"]["value"], *leaves["names"]["value"])
        if any(folded.startswith(_folded(n)) for n in names if not n.isdigit()):
            return str(arch)
    return None


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{total / 2**30:.1f} GiB"


def _version_of(*programs: str) -> str:
    """Path and last version-like line of the first program on PATH."""
    for program in programs:
        path = shutil.which(program)
        if path:
            lines = [line for line in _run(path, "--version") if re.search(r"\d+\.\d+", line)]
            # nvcc prints its release after the copyright, g++ before it.
            line = lines[-1] if program == "nvcc" and lines else (lines or ["no version"])[0]
            return f"{line} ({path})"
    return "not found"


def _nvidia() -> list[tuple[str, str]]:
    path = shutil.which("nvidia-smi")
    if path is None:
        return []
    rows = _run(path, "--query-gpu=name,compute_cap", "--format=csv,noheader")
    pairs = [row.rpartition(", ") for row in rows]
    return [
        (name, f"sm_{capability.replace('.', '')}") for name, comma, capability in pairs if comma
    ]


def _ascend() -> list[str]:
    if available("ascend"):
        import torch

        npu = torch.npu
        return [str(npu.get_device_name(i)) for i in range(npu.device_count())]
    nodes = [p for p in Path("/dev").glob("davinci[0-9]*") if p.name[7:].isdigit()]
    return [f"device node {p.name} (name unknown without torch_npu)" for p in sorted(nodes)]


def _run(*argv: str) -> list[str]:
    """Lines a probe prints, or none where it fails: a broken driver is not an error of ours."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
