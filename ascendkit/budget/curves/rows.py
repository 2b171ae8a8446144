"""Measured kernel times as rows: calls of ops, microseconds, and where the figure comes from.

A device's rows live in ``configs/data/kernels/<device>.yaml``, ``<device>.own.yaml`` and
``<device>.tables.yaml`` (both written by scripts). ``series`` are one line and many sizes; ``rows``
give a row of another table its meaning: which op, which parameters. Of an op that a file lists
under ``instead``, the rows of other files are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ascendkit.budget.call import Call
from ascendkit.budget.curves.facts import files, mark_of
from ascendkit.data import table

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Row:
    """One measured time.

    Args:
        id: id of the row, and of the table it stands in.
        device: where it was measured.
        calls: what ran in that time.
        seconds: time without the launch floor of its own method.
        mark: ``M`` measured here, ``P`` published.
        source: key of the source, and its text.
        phase: the phase whose kernels it stands for; empty for any.
        note: what a reader should know.
        overlapped: it was measured while the other kind of work (compute, transfer) ran beside it.
    """

    id: str
    device: str
    calls: tuple[Call, ...]
    seconds: float
    mark: str
    source: str
    phase: str = ""
    note: str = ""
    overlapped: bool = False


ADOPTED: dict[str, tuple[Row, ...]] = {}
"""Rows of the bench's records, by device; see :mod:`ascendkit.budget.curves.records`."""


@lru_cache(maxsize=32)
def rows(device: str) -> tuple[Row, ...]:
    """All rows measured on ``device``, series first."""
    got = files(device)
    found = [
        (file, row)
        for read in (_series, lambda _, file: _referred(device, file))
        for file in got
        for row in read(device, file)
    ]
    taken = {op for file in got for op in file.get("instead", ())}
    return (
        *(
            row
            for file, row in found
            if not any(c.op in taken and c.op not in file.get("instead", ()) for c in row.calls)
        ),
        *ADOPTED.get(device, ()),
    )


def _series(device: str, file: Mapping[str, Any]) -> Iterator[Row]:
    for s in file.get("series", ()):
        under = s.get("floor_us", file.get("floor_us", 0.0)) * 1e-6
        for i, us in enumerate(s["us"]):
            at = {f"${k}": v[i] for k, v in s["at"].items()}
            calls = tuple(_call(c, at) for c in s["calls"])
            yield Row(
                f"{s['id']}[{i}]",
                device,
                calls,
                _above(us * 1e-6, under),
                mark_of(file, s["source"]),
                f"{s['source']}: {file['sources'][s['source']]['ref']}",
                s.get("phase", ""),
                s.get("note", ""),
            )


def _call(c: Mapping[str, Any], at: Mapping[str, Any]) -> Call:
    params = {k: at.get(v, v) if isinstance(v, str) else v for k, v in c["params"].items()}
    return Call(c["op"].rpartition(".")[2], c["op"], params, c.get("n", 1))


def _above(seconds: float, under: float) -> float:
    """Time above the launch floor; at least a tenth, since floors scatter too."""
    return max(seconds - under, seconds / 10)


def _referred(device: str, file: Mapping[str, Any]) -> Iterator[Row]:
    for r in file.get("rows", ()):
        for row_id, raw in _sources(r):
            at = _shape(r, raw)
            if at is None:
                continue
            calls = tuple(_call(c, at) for c in r["calls"])
            seconds = _seconds(r, raw, calls)
            yield Row(
                row_id, device, calls, _above(seconds, r.get("floor_us", 0.0) * 1e-6), "P",
                str(raw["source"]), r.get("phase", ""), r.get("note", ""),
                r.get("overlapped", False),
            )  # fmt: skip


def _sources(r: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of the named table that ``r`` explains: by id, or by op, dtype and device text."""
    name = r["table"]
    if name == "validation_points":
        point = next(p for p in table(name)["points"] if p["id"] == r["id"])
        yield f"{r['id']}.{r['metric']}", point["metrics"][r["metric"]]
        return
    stock = table(name)["kernels" if name == "hardware" else "rows"]
    wanted = {k: r[k] for k in ("id", "op", "dtype") if k in r}
    for raw in stock:
        if all(raw.get(k) == v for k, v in wanted.items()) and r.get("on", "") in str(
            raw.get("device", raw.get("platform"))
        ):
            yield raw["id"], raw


def _shape(r: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Numbers in the row's text; None where a row of the group has another shape."""
    if "shape" not in r:
        return {}
    found = re.search(r["shape"], str(raw["shape"]))
    return {f"${k}": int(v) for k, v in found.groupdict().items()} if found else None


def _seconds(r: Mapping[str, Any], raw: Mapping[str, Any], calls: tuple[Call, ...]) -> float:
    """The row's time; a row that prints a rate is divided into the work of its calls."""
    value = raw["value"][r["pick"]] if "pick" in r else raw["value"]
    if "us" in r:
        return float(r["us"]) * 1e-6
    unit = str(raw["unit"]).split()[0].rstrip(",")
    if unit in UNITS:
        return float(value) * UNITS[unit]
    if unit in ("TFLOPS", "TOPS"):
        work = sum(
            c.count * v for c in calls for (u, _), v in c.cost.flops().items() if u == "cube"
        )
        return float(work / (value * 1e12))
    scale = {"TB/s": 1e12, "GB/s": 1e9}[unit]
    moved = sum(
        c.count * (_wire(c, r["link"]) if "link" in r else c.cost.minimum_bytes()) for c in calls
    )
    return float(moved / (value * scale))


def _wire(c: Call, counted: str) -> float:
    """Bytes a printed link rate counts: copies to all ranks, or to all nodes, the own included."""
    ranks = int(c.params["ep"])
    if counted == "logical_rdma":
        return c.cost.link_bytes()["scaleout"] / (1 - int(c.params["scaleup_ranks"]) / ranks)
    return c.cost.link_bytes()["scaleup"] / (1 - 1 / ranks)
