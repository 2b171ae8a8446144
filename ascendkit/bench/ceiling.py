"""What the memory of this device reaches today, on as many bytes as the op moves.

Small copies are slower than large ones, so a ceiling measured on another size flatters or slanders.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ascendkit.bench.timing import Call, do_bench

SET_BYTES = 1 << 30
MAX_SETS = 48
ONE_SIDED = 0.75
"""From this share of reads (writes) on, reading (writing) alone is a candidate for the ceiling."""


@dataclass(frozen=True)
class Ceiling:
    """Fastest plain traffic on the same number of bytes.

    Args:
        kind: ``copy`` (``torch.mul(a, 1, out=b)``), ``read`` (``sum``) or ``write`` (``fill_``).
        bytes: read plus written.
        us: median time.
        method: how it was timed.
    """

    kind: str
    bytes: float
    us: float
    method: str

    @property
    def gbs(self) -> float:
        """Rate in GB/s (1e9 bytes a second)."""
        return self.bytes / self.us / 1e3


def num_sets(num_bytes: float) -> int:
    """Distinct memory sets for calls of that size: enough for 1 GiB, at least 2, at most 48."""
    return max(2, min(MAX_SETS, math.ceil(SET_BYTES / max(num_bytes, 1))))


@dataclass
class Ceilings:
    """Ceilings and the launch floor of one device, measured once a run for each size."""

    device: str
    _known: dict[tuple[str, int], Ceiling] = field(default_factory=dict)
    _floor: float = 0.0

    def best(self, read: float, write: float) -> Ceiling:
        """The fastest candidate for that traffic, so that nobody is measured against less."""
        total = read + write
        kinds = ["copy"]
        if read >= ONE_SIDED * total:
            kinds.append("read")
        if write >= ONE_SIDED * total:
            kinds.append("write")
        return min((self._measured(k, total) for k in kinds), key=lambda c: c.us)

    def launch_us(self) -> float:
        """Time of the smallest kernel in a graph: no launch is faster."""
        if not self._floor:
            import torch

            cells = [torch.zeros(1, device=self.device) for _ in range(MAX_SETS)]
            self._floor = do_bench([_fill(c) for c in cells], self.device).p50
        return self._floor

    def _measured(self, kind: str, total: float) -> Ceiling:
        key = (kind, int(total))
        if key not in self._known:
            build = {"copy": _copies, "read": _reads, "write": _writes}[kind]
            moved, calls = build(total, self.device)
            timing = do_bench(calls, self.device)
            self._known[key] = Ceiling(kind, moved, timing.p50, timing.method)
        return self._known[key]


def _copies(total: float, device: str) -> tuple[int, list[Call]]:
    import torch

    count = max(1, round(total / 8))
    pairs = [
        (torch.ones(count, device=device), torch.empty(count, device=device))
        for _ in range(num_sets(total))
    ]
    # A plain copy inside a graph becomes a memcpy node, which is slower than this kernel.
    return count * 8, [_bind(lambda p: torch.mul(p[0], 1, out=p[1]), p) for p in pairs]


def _reads(total: float, device: str) -> tuple[int, list[Call]]:
    import torch

    count = max(1, round(total / 4))
    many = [torch.ones(count, device=device) for _ in range(num_sets(total))]
    return count * 4, [_bind(torch.sum, a) for a in many]


def _writes(total: float, device: str) -> tuple[int, list[Call]]:
    import torch

    count = max(1, round(total / 4))
    many = [torch.empty(count, device=device) for _ in range(num_sets(total))]
    return count * 4, [_fill(a) for a in many]


def _fill(cell: Any) -> Call:
    return _bind(lambda t: t.fill_(1.0), cell)


def _bind(fn: Callable[[Any], Any], argument: Any) -> Call:
    return lambda: fn(argument)
