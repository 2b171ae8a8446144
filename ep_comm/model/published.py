"""The published tables as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ascendkit.data import load_yaml
from ascendkit.errors import unknown
from ep_comm.model.volume import PARTS, Volume, volume


@dataclass(frozen=True)
class Point:
    """One published figure.

    Args:
        machine, part, ranks: which.
        link: link whose bytes the figure counts.
        bound: link taken to bind.
        gbs: logical GB/s, midpoint of the printed range; 0 where a time is printed.
        us: printed or implied time, microseconds.
        note: what distinguishes the row.
    """

    machine: str
    part: str
    ranks: int
    link: str
    bound: str
    gbs: float
    us: float
    note: str

    @property
    def low_latency(self) -> bool:
        """A time of a kernel without deduplication."""
        return not self.gbs

    @property
    def volume(self) -> Volume:
        """What one rank moves."""
        return volume_of(self.machine, self.part, self.ranks)


@lru_cache(maxsize=1)
def data() -> Mapping[str, Any]:
    """The file."""
    return load_yaml(Path(__file__).with_name("published.yaml"))


def machines() -> tuple[str, ...]:
    """Names of machines with published tables."""
    return tuple(data()["machines"])


def shape(machine: str) -> dict[str, int]:
    """Shape of the published runs, and ranks of a node."""
    if machine not in machines():
        raise unknown("machine", machine, machines())
    near = data()["machines"][machine]["scaleup_ranks"]
    return {**data()["shapes"][machine], "scaleup_ranks": near}


def volume_of(machine: str, part: str, ranks: int) -> Volume:
    """Volume of a published row."""
    s = shape(machine)
    return volume(part, ranks=ranks, dedup=machine != "h800_ll", dtype="", **s)


@lru_cache(maxsize=1)
def points() -> tuple[Point, ...]:
    """All figures, dispatch and combine apart."""
    found = []
    for row in data()["rows"]:
        for part in PARTS:
            gbs, us = 0.0, float(row.get(f"{part}_us", 0.0))
            if not us:
                gbs = sum(row[part]) / 2
                moved = volume_of(row["machine"], part, row["ranks"]).logical(row["link"])
                us = moved / gbs / 1e3
            found.append(
                Point(row["machine"], part, row["ranks"], row["link"], row["bound"], gbs, us,
                      row.get("note", ""))
            )  # fmt: skip
    return tuple(found)
