"""Constants of a link fitted on a measured run, and what they say about the rest of it.

The run is a file that ``python -m ep_comm multi record=...`` wrote. Rate and start of the link
come from ``all_to_all_single`` at the fewest tokens alone; everything else is predicted: more
tokens, and dispatch with a handle and combine, which add one pass over memory at the rate of the
run's own copy. Time of the host is not in it: a call that its host is slower at issuing is
predicted too fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ep_comm.model.link import link_constants

PARTS = ("all_to_all", "cached", "combine")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Predicted:
    """One call of the run.

    Args:
        what, path, shape: which.
        us: measured, a call of many in a row.
        model_us: predicted; fitted where ``fitted``.
    """

    what: str
    path: str
    shape: Mapping[str, Any]
    us: float
    model_us: float
    fitted: bool

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.model_us / self.us - 1


@dataclass(frozen=True)
class Fit:
    """Constants of a run (GB/s on the wire, us, GB/s read and written), and its calls."""

    wire_gbs: float
    start_us: float
    copy_gbs: float
    calls: tuple[Predicted, ...]


def load(path: Path) -> list[Row]:
    """Timed calls of a run. ValueError where the file holds none."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    found = [r for r in rows if r.get("record") == "ep_comm_multi_time"]
    if not found:
        raise ValueError(f"{path}: got no record ep_comm_multi_time, wanted a run of ep_comm multi")
    return found


def fit(rows: Sequence[Row]) -> Fit:
    """Fit the link on the fewest tokens and predict everything."""
    fewest = min(r["shape"]["tokens"] for r in rows)
    given = [r for r in rows if r["what"] == "all_to_all" and r["shape"]["tokens"] == fewest]
    rate, start, _ = link_constants([(r["wire_bytes"], r["in_row_us"]) for r in given])
    copies = [2 * r["logical_bytes"] / r["in_row_us"] for r in rows if r["what"] == "memcpy"]
    copy = sorted(copies)[len(copies) // 2] / 1e3
    calls = tuple(
        Predicted(
            r["what"], r["path"], r["shape"], r["in_row_us"],
            start + r["wire_bytes"] / rate / 1e3 + _pass(r) / copy / 1e3,
            r in given,
        )
        for r in rows if r["what"] in PARTS
    )  # fmt: skip
    return Fit(rate, start, copy, calls)


def _pass(r: Row) -> float:
    """Bytes read and written beside the link: rows gathered by dispatch, rows summed by combine."""
    rows = float(r["logical_bytes"])
    if r["what"] == "cached":
        return 2 * rows
    if r["what"] == "combine":
        return rows + 2.0 * r["shape"]["tokens"] * r["shape"]["hidden"]
    return 0.0
