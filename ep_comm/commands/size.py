"""``python -m ep_comm size``: bytes of a buffer, term by term."""

from __future__ import annotations

from typing import Any

from ascendkit import cli
from ascendkit.errors import bad_value
from ep_comm.checks import MAX_RANKS, MAX_TOPK, nearest_multiple, row_step
from ep_comm.commands import given, show
from ep_comm.size import BUFFER_ALIGN, REVISION, buffer_size, total


def main(c: dict[str, Any]) -> int:
    """Print terms and total."""
    given.numbers(c, scaleup=(1, MAX_RANKS), topk=(0, MAX_TOPK))
    step, ranks = row_step(1 if c["fp8"] else 2), c["scaleout"] * c["scaleup"]
    if c["hidden"] % step:
        near = nearest_multiple(c["hidden"], step)
        raise bad_value("hidden", c["hidden"], f"a multiple of {step}", near)
    if ranks > MAX_RANKS:
        told = f"{c['scaleout']} x {c['scaleup']} = {ranks} ranks"
        near = max(1, MAX_RANKS // c["scaleup"])
        raise bad_value("scaleout", told, f"at most {MAX_RANKS} ranks", near)
    size = buffer_size(
        c["tokens"], c["hidden"], c["topk"], scaleout_ranks=c["scaleout"],
        scaleup_ranks=c["scaleup"], use_fp8_dispatch=c["fp8"], allow_hybrid_mode=c["hybrid"],
        allow_multiple_reduction=c["multiple_reduction"], scaleup_is_nvlink=c["stores"],
        channels=c["channels"],
    )  # fmt: skip
    terms = [(part, t) for part, ts in _parts(size) for t in ts]
    if c["output"] == "json":
        show.lines(
            {"record": "ep_comm_size", "part": p, "term": t.what, "formula": t.formula,
             "records": t.records, "record_bytes": t.record_bytes, "bytes": t.bytes}
            for p, t in terms
        )  # fmt: skip
        show.lines([{"record": "ep_comm_size", "num_bytes": size.num_bytes}])
        return 0
    show.table(
        f"buffer of one rank, formulas of {REVISION}",
        ("part", "term", "records", "count", "bytes each", "bytes"),
        [(p, t.what, t.formula, f"{t.records:,}", f"{t.record_bytes:,}", f"{t.bytes:,}")
         for p, t in terms],
    )  # fmt: skip
    out = cli.console()
    for part, ts in _parts(size):
        out.print(f"{part}: {total(ts):,} bytes")
    units = size.num_bytes // BUFFER_ALIGN
    out.print(f"buffer: {size.num_bytes:,} bytes = {units} x 2 MiB = {show.gib(size.num_bytes)} GiB"
              " (the larger part, rounded up)")  # fmt: skip
    return 0


def _parts(size: Any) -> list[tuple[str, Any]]:
    return [("dispatch", size.dispatch), ("combine", size.combine)]
