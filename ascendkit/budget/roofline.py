"""Time of a call on a device at its peak rates: one time per resource, the largest binds.

This is a bound, not a prediction: every rate is the peak of the hardware table. A rate that the
table does not know makes that resource's time unknown; the call's time is then a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascendkit.cost import LINKS, Cost
from ascendkit.hardware import Device

RESOURCES = ("cube", "vector", "hbm", "l2", "scaleup", "scaleout")

_WIDER = {
    "mxfp4": ("mxfp4", "fp4", "w4a8", "fp8", "bf16"),
    "w4a8": ("w4a8", "fp8", "bf16"),
    "fp8": ("fp8", "bf16"),
    "hf32": ("hf32",),
    "int8": ("int8",),
    "bf16": ("bf16",),
    "fp32": ("fp32",),
}
"""Rate classes that hold a product's operands exactly, narrowest first.

E2M1 codes are E4M3 codes and E4M3 codes are BF16 values, so a device without the narrow unit runs
the product in the next wider one without changing it.
"""


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
