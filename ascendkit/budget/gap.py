"""Host time between graphs of one decode step: the one constant set by a whole-step measurement.

A stack's file of kernel rows may name a calibration point; the gap is what that point took beyond
its modelled kernels, a graph. Points of role ``calibration`` never count in a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ascendkit.budget.curves.facts import calibration
from ascendkit.budget.curves.lookup import Stack


@dataclass(frozen=True)
class Gap:
    """Seconds between two graphs, their mark, and the point they come from."""

    seconds: float
    mark: str
    source: str


def graph_gap(device_key: str, stack: Stack) -> Gap:
    """The gap of a device's stack; zero where none was calibrated."""
    return _gap(device_key, stack.without)


@lru_cache(maxsize=64)
def _gap(device_key: str, without: tuple[str, ...]) -> Gap:
    found = calibration(device_key)
    if found is None or any(found[1].startswith(w) for w in without):
        return Gap(0.0, "", "")
    home, point = found
    from ascendkit.budget.validate.runs import calibrated_gap

    seconds = calibrated_gap(point, without)
    return Gap(seconds, "P" if home == device_key else "T", f"{home}: calibration point {point}")
