"""Matrix work as tiles: rows padded to a tile, tiles rounded up to whole waves over the cores.

Selectors pick the tile that wastes least, so the factor is the smallest over the tiles they have.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from ascendkit.budget.curves.facts import vendor
from ascendkit.hardware import Device

TILES = {
    "nvidia": ((64, 128), (64, 256), (128, 128), (128, 256), (256, 128)),
    "ascend": ((64, 256), (128, 128), (128, 256), (256, 128), (256, 256)),
}
"""Output tiles of DeepGEMM's selector, and those that fit 64 KB of L0A/L0B and 256 KB of L0C."""
SMALL_M = (16, 32)
"""Selectors of decode kernels swap operands below 64 rows."""


def family(device: Device) -> str:
    """``ascend`` or ``nvidia``: whose selectors and launch paths apply."""
    return vendor(device.key)


def cores(device: Device) -> int | None:
    """Matrix cores: AIC or SM; None where unknown."""
    got = device.get("cores_aic") or device.get("sms")
    return None if got is None else int(got)


def padding(device: Device, m: float, n: float, batch: float = 1) -> float:
    """Executed over useful matrix work of ``batch`` products of ``m`` x ``n``; at least 1.

    ``m`` may be a mean over experts; it is padded as if every expert had that many rows.
    """
    have = cores(device)
    if have is None or m <= 0:
        return 1.0
    return _padding(family(device), have, m, n, batch)


@lru_cache(maxsize=65536)
def _padding(kind: str, have: int, m: float, n: float, batch: float) -> float:
    """Splitting the depth fills idle cores where a single wave would leave most of them empty."""
    small = tuple((bm, 256) for bm in SMALL_M) if m < 64 else ()
    best = float("inf")
    for bm, bn in TILES[kind] + small:
        tiles = ceil(m / bm) * ceil(n / bn) * batch
        waves = ceil(tiles / have) if tiles > have else tiles / have
        best = min(best, waves * have * bm * bn)
    return float(max(best / (m * n * batch), 1.0))
