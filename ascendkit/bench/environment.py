"""Where a figure was taken: device, versions, and the commit of the code."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path

from ascendkit import data, hardware
from ascendkit.hardware import Device


@lru_cache(maxsize=4)
def device_name(device: str) -> str:
    """Name of the current device of that kind, or of the host processor."""
    if device == "cpu":
        return _processor()
    import torch

    return str(torch.get_device_module(device).get_device_name())


@lru_cache(maxsize=4)
def environment(device: str) -> dict[str, str]:
    """Versions that can change a figure; the driver where the device has one."""
    import torch

    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if device == "cuda":
        found["cuda"] = str(torch.version.cuda)
        found.update(_nvidia())
    if device == "npu":
        import torch_npu

        found["torch_npu"] = str(torch_npu.__version__)
    if device == "cpu":
        found["threads"] = str(torch.get_num_threads())
    return found


@lru_cache(maxsize=1)
def commit() -> str:
    """Commit of this checkout, with ``-dirty`` where files differ; ``unknown`` outside of one."""
    given = os.environ.get("ASCENDKIT_COMMIT")
    if given:
        return given
    head = _run("git", "rev-parse", "--short=12", "HEAD")
    if not head:
        return "unknown"
    return head + ("-dirty" if _run("git", "status", "--porcelain", "-uno") else "")


def known_device(name: str) -> Device | None:
    """The row of the hardware table for a name the runtime reports, None when it has none."""
    words = name.lower().replace("nvidia", "").replace("huawei", "").split()
    for end in range(len(words), 0, -1):
        try:
            return hardware.device(
                data.resolve("device", " ".join(words[:end]), hardware.devices())
            )
        except ValueError:
            continue
    return None


@lru_cache(maxsize=4)
def l2_bytes(device: str) -> int | None:
    """Last-level cache of the device, None where the runtime does not say."""
    if device != "cuda":
        return None
    import torch

    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


def l2_state(device: str, footprint: float) -> str:
    """Where a call finds its data when ``footprint`` bytes are used in turn.

    ``cold``: at least four times the cache; ``warm``: fits into it; ``mixed``: between.
    """
    size = l2_bytes(device)
    if size is None:
        return "unknown"
    return "cold" if footprint >= 4 * size else "warm" if footprint <= size else "mixed"


def _nvidia() -> dict[str, str]:
    fields = {"driver": "driver_version", "max_sm_mhz": "clocks.max.sm", "power_w": "power.limit"}
    text = _run(
        "nvidia-smi", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader,nounits"
    )
    values = [v.strip() for v in text.splitlines()[0].split(",")] if text else []
    return dict(zip(fields, values)) if len(values) == len(fields) else {}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _run(*command: str) -> str:
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
