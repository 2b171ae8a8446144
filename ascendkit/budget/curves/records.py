"""Records of the bench as rows: what was measured here times the budget, marked ``M``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from ascendkit.bench.record import Record
from ascendkit.bench.store import load
from ascendkit.budget.call import Call
from ascendkit.budget.curves import lookup, rows
from ascendkit.budget.curves.facts import floor
from ascendkit.data import resolve
from ascendkit.errors import bad_value
from ascendkit.hardware import devices
from ascendkit.registry import op, ops


def adopt(paths: Iterable[str]) -> int:
    """Use the records of JSONL files from now on; returns how many rows they gave.

    Records of the reference platform, and of cases whose parameters do not give the op's cost, are
    left out. ValueError for a file that cannot be read and for a device the tables do not know.
    """
    found: dict[str, list[rows.Row]] = {}
    for text in paths:
        path = Path(text)
        if not path.is_file():
            raise bad_value("measured", text, "a JSONL file of records")
        try:
            records = load(path)
        except OSError as e:
            raise ValueError(f"measured: cannot read {text!r}: {e.strerror}") from None
        for number, record in enumerate(records, 1):
            row = _row(record, f"{path.name}:{number}")
            if row is not None:
                found.setdefault(row.device, []).append(row)
    rows.ADOPTED.clear()
    rows.ADOPTED.update({k: tuple(v) for k, v in found.items()})
    rows.rows.cache_clear()
    lookup.forget()
    return sum(map(len, found.values()))


def _row(record: Record, row_id: str) -> rows.Row | None:
    if record.platform == "reference" or record.op not in ops():
        return None
    key = device_of(record.device)
    legal = inspect.signature(op(record.op).load("cost").cost).parameters
    params = {k: v for k, v in record.params.items() if k in legal}
    try:
        op(record.op).cost(**params)
    except (TypeError, ValueError):
        return None
    seconds = record.time_us["p50"] * 1e-6
    mode = "graph" if "graph" in record.method else "eager"
    under = floor(key, mode)[0]
    call = Call(record.op.rpartition(".")[2], record.op, params)
    return rows.Row(
        row_id, key, (call,), max(seconds - under, seconds / 10), "M",
        f"record {row_id}, commit {record.commit}, {record.method}",
    )  # fmt: skip


def device_of(name: str) -> str:
    """The device a runtime's name stands for: ``NVIDIA H200``, ``Ascend950DT_9582``."""
    folded = name.lower().replace("nvidia", "").replace(" ", "").split("_")[0]
    for key in sorted(devices(), key=len, reverse=True):
        if key.replace("_", "").removesuffix("die") in folded:
            return key
    return resolve("device of a record", name, devices())
