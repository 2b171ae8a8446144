"""Time of a call on a device at its peak rates: one time per resource, the largest binds.

This is a bound, not a prediction: every rate is the peak of the hardware table. A rate that the
table does not know makes that resource's time unknown; the call's time is then a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ascendkit.cost import LINKS, Cost
from ascendkit.errors import bad_value
from ascendkit.formats import FORMATS, fmt, product_dtype
from ascendkit.hardware import Device

RESOURCES = ("cube", "vector", "hbm", "l2", "scaleup", "scaleout")

_WIDER = {
    "mxfp4": ("mxfp4", "fp4", "w4a8", "fp8", "bf16"),
    "w4a8": ("w4a8", "fp8", "bf16"),
    "fp8": ("fp8", "bf16"),
    "hif8": ("hif8",),
    "hf32": ("hf32",),
    "int8": ("int8",),
    "bf16": ("bf16",),
    "fp32": ("fp32",),
}
"""Rate classes that hold a product's operands exactly, narrowest first.

E2M1 codes are E4M3 codes and E4M3 codes are BF16 values, so a device without the narrow unit runs
the product in the next wider one without changing it. HiF8 has a wider range than E4M3, so no FP8
unit stands in for it.
"""
NEEDED = ("cube", "vector", "hbm", "scaleup", "scaleout")
"""Resources without whose rate a time is a lower bound. L2 is left out: its bytes also pass device
memory, and kernels are measured with theirs."""


@dataclass(frozen=True)
class Time:
    """Seconds by resource; None where the device's rate is unknown."""

    by_resource: dict[str, float | None]

    @property
    def seconds(self) -> float:
        """The largest known time."""
        return max((t for t in self.by_resource.values() if t is not None), default=0.0)

    @property
    def bound(self) -> str:
        """The resource that takes longest among the known ones."""
        known = {r: t for r, t in self.by_resource.items() if t is not None}
        return max(known, key=lambda r: known[r]) if known else "unknown"

    @property
    def unknown(self) -> tuple[str, ...]:
        """Resources whose rate the table does not know."""
        return tuple(r for r, t in self.by_resource.items() if t is None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Of those, the ones that make any time of the call a lower bound."""
        return tuple(r for r in self.unknown if r in NEEDED)


@lru_cache(maxsize=256)
def _rate(device: Device, dtype: str) -> tuple[str, float | None]:
    for name in _WIDER[dtype]:
        rate = device.flops_per_s("cube", name)
        if rate is not None:
            return name, rate
    return dtype, None


def runs_as(device: Device, dtype: str) -> str:
    """The rate class a product of class ``dtype`` runs at on ``device``."""
    return _rate(device, dtype)[0]


def falls_to(device: Device, dtype: str) -> str:
    """The wider class a product of class ``dtype`` falls to; empty where the device has its own."""
    got = runs_as(device, dtype)
    return "" if {got, dtype} <= {"mxfp4", "fp4"} or got == dtype else got


def _native(device: Device, dtype: str) -> bool:
    return _rate(device, dtype)[1] is not None and not falls_to(device, dtype)


def check_formats(device: Device, names: Iterable[str]) -> None:
    """Raise ValueError for a format whose codes no unit of the device holds."""
    for name in names:
        if fmt(name).family == "hif8" and _rate(device, "hif8")[1] is None:
            have = [f for f in FORMATS if _native(device, product_dtype(f, f))]
            wanted = f"a format with a known rate on {device.key}: {', '.join(have)}"
            raise bad_value("format", name, wanted, "fp8" if "fp8" in have else "bf16")


def roofline(cost: Cost, device: Device) -> Time:
    """Time of one call by resource, each at the device's peak."""
    times: dict[str, float | None] = {}
    for (unit, dtype), flops in cost.flops().items():
        rate = _rate(device, dtype)[1] if unit == "cube" else device.flops_per_s(unit, dtype)
        _add(times, unit, flops, rate)
    _add(times, "hbm", cost.minimum_bytes(), device.bytes_per_s("hbm"))
    _add(times, "l2", cost.planned_bytes()["l2"], device.bytes_per_s("l2"))
    sent = cost.link_bytes()
    for link in LINKS:
        if sent.get(link):
            _add(times, link, sent[link], device.link_bytes_per_s(link))
    return Time(times)


def _add(times: dict[str, float | None], what: str, work: float, rate: float | None) -> None:
    if not work:
        return
    before = times.get(what, 0.0)
    times[what] = None if rate is None or before is None else before + work / rate
