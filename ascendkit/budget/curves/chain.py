"""Where a call without rows of its own looks for others, nearest first."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ascendkit.budget.curves.facts import donors
from ascendkit.budget.curves.work import Key, split_or_whole

ALIKE: dict[str, Callable[[Key, Key], bool]] = {
    "same kernel": lambda k, o: k == o,
    "rows split or whole": split_or_whole,
    "another phase's kernel": lambda k, o: k == o,
    "another format": lambda k, o: (k.op, k.variant) == (o.op, o.variant),
    "the op's other pass": lambda k, o: k.op == o.op,
    "a related op": lambda k, o: (k.family, k.dtype) == (o.family, o.dtype),
    "a related op in another format": lambda k, o: k.family == o.family,
}
"""Steps away from the call's own curve, nearest first."""


@lru_cache(maxsize=64)
def chain(device_key: str) -> tuple[tuple[str, str, str, str], ...]:
    """Where to look, how alike it must be, the mark, and what the report says."""
    near, sibling, *others = ALIKE
    steps = [
        (device_key, near, "", "rows of this op on this device"),
        (device_key, sibling, "T", "this op with its rows split the other way on this device"),
    ]
    for d in donors(device_key):
        # Before the next device: fewer rows and more rows of a call are timed by one device.
        how = f"latency and utilisation of this op on {d}"
        steps += [(d, near, "T", how), (d, sibling, "T", f"{how}, rows split the other way")]
    steps += [(device_key, a, "T", f"{a} on this device") for a in others[:2]]
    steps += [(device_key, others[2], "T", f"{others[2]} on this device")]
    steps += [(d, others[0], "T", f"{others[0]} on {d}") for d in donors(device_key)]
    steps += [(device_key, others[3], "T", f"{others[3]} on this device")]
    steps += [(d, a, "T", f"{a} on {d}") for d in donors(device_key) for a in others[1:3]]
    steps += [(device_key, others[4], "T", f"{others[4]} on this device")]
    steps += [(d, a, "T", f"{a} on {d}") for d in donors(device_key) for a in others[3:]]
    return tuple(steps)
