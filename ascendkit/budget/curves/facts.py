"""What the files of kernel rows say besides rows: donors, floors, contention, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ascendkit.data import configs, load_yaml, table

MODES = ("graph", "queued", "eager")


def known() -> tuple[str, ...]:
    """Devices that have a file of rows."""
    return tuple(sorted({p.name.split(".")[0] for p in _folder().glob("*.yaml")}))


def _folder() -> Path:
    return configs() / "data" / "kernels"


@lru_cache(maxsize=32)
def files(device: str) -> tuple[dict[str, Any], ...]:
    paths = (_folder() / f"{device}{tail}.yaml" for tail in ("", ".own", ".tables"))
    return tuple(load_yaml(p) for p in paths if p.is_file())


def file(device: str) -> dict[str, Any]:
    """The file written by hand."""
    return next(iter(files(device)), {})


def donors(device: str) -> tuple[str, ...]:
    """Devices whose rows may stand in, nearest first."""
    return tuple(file(device).get("donors", ()))


@lru_cache(maxsize=64)
def floor(device: str, mode: str) -> tuple[float, str, str]:
    """Seconds of an empty kernel launched by ``mode``, its mark, and its source.

    A device without a measured floor takes that of its nearest donor, marked ``T``; without donors
    the largest floor known of its vendor's devices, marked ``A``.
    """
    for i, key in enumerate((device, *donors(device))):
        got = _floors(key).get(mode)
        if got is not None:
            mark = mark_of(file(key), got["source"])
            return got["us"] * 1e-6, mark if not i else "T", f"{key}: {got['source']}"
    near = [k for k in known() if vendor(k) == vendor(device) and mode in _floors(k)]
    if not near:
        return 0.0, "A", "no measured floor"
    slowest = max(near, key=lambda k: float(_floors(k)[mode]["us"]))
    return (
        _floors(slowest)[mode]["us"] * 1e-6, "A",
        f"largest floor known of {vendor(device)} devices, {slowest}",
    )  # fmt: skip


def vendor(device: str) -> str:
    """``ascend`` or ``nvidia``."""
    return "ascend" if device.startswith("ascend") else "nvidia"


def _floors(device: str) -> Mapping[str, Any]:
    got: Mapping[str, Any] = file(device).get("floors", {})
    return got


@lru_cache(maxsize=64)
def contention(device: str, collective: bool = False) -> tuple[float, str]:
    """Share of its rate a transfer keeps while kernels compute beside it, and where that is from.

    Args:
        collective: of a library's collective, whose kernels compete for cores with the products;
            otherwise of expert-parallel kernels, which have cores of their own.

    The mean of what was measured under overlap and alone; 1 where nobody measured both.
    """
    for key in (device, *donors(device)):
        got = file(key)
        if collective and "collective_kept" in got:
            kept = got["collective_kept"]
            return sum(kept["of_rate"]) / len(kept["of_rate"]), f"{key}: {kept['source']}"
        if not collective and "contention" in got:
            pairs = got["contention"]
            stock = {r["id"]: r["value"] for r in table("hardware")["kernels"]}
            ratios = [stock[p["under"]] / stock[p["alone"]][p["pick"]] for p in pairs]
            return sum(ratios) / len(ratios), f"{key}: {pairs[0]['under']}"
    return 1.0, "not measured"


@lru_cache(maxsize=64)
def calibration(device: str) -> tuple[str, str] | None:
    """Device and id of the whole-step point that sets the host gap of this device's stack.

    It carries over within a vendor's own chips only: the gap is the host's, not the chip's.
    """
    for key in (device, *donors(device)):
        if "calibration" in file(key) and vendor(key) == vendor(device):
            return key, str(file(key)["calibration"])
    return None


def mark_of(got: Mapping[str, Any], source: str) -> str:
    sources = got.get("sources", {})
    kind = str(sources.get(source, {}).get("kind", ""))
    return "M" if kind.startswith("measured here") else "E" if kind.startswith("emulated") else "P"
