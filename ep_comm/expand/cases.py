"""Cases of expand: rows of real widths, gaps, one row many times, no rows; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract

CONTRACT = Contract(
    compare="bitwise",
    rules=("bytes move unchanged, NaN payloads included", "an index of -1 gives a row of zeros"),
    oracle="one row at a time",
    source="DeepEP 2.5.0 expanded layout and zero padding",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for rows, out in ((0, 0), (0, 3), (1, 0), (1, 1), (7, 33)):
        yield _case(rows, out, 256)
    yield _case(5, 19, 512, "float8_e4m3fn")
    yield _case(5, 19, 8)
    for hidden in (64, 72, 2048, 3584, 4096, 7168):
        yield _case(9, 31, hidden, level="core")
    for out in (31, 32, 127, 128, 129, 1025):
        yield _case(40, out, 128, level="core", gaps=0.3)
    yield _case(3, 50, 128, level="core", gaps=1.0)
    for out in (128, 4096, 16384):
        for dtype in ("bfloat16", "float8_e4m3fn"):
            yield _case(out, out, 7168, dtype, level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {"num_rows": 4, "num_out": 6, "row_bytes": 64, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "int64_index": "TypeError",
    "narrow": "ValueError",
    "strided": "ValueError",
    "flat": "ValueError",
}


def _case(
    rows: int,
    out: int,
    hidden: int,
    dtype: str = "bfloat16",
    *,
    level: str = "smoke",
    bench: bool = False,
    gaps: float = 0.1,
) -> Case:
    size = 1 if dtype.startswith("float8") else 2
    params = {
        "num_rows": rows, "num_out": out, "row_bytes": hidden * size, "dtype": dtype,
        "gaps": 0.0 if bench else gaps, "once": bench,
    }  # fmt: skip
    return Case(f"{rows}to{out}x{hidden}-{dtype}-{gaps}", params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(rows, index); in bench cases every row once, in drawn order."""
    import torch

    from ascendkit.testing import generator

    p, g = case.params, generator(seed)
    dtype = getattr(torch, p.get("dtype", "bfloat16"))
    shape = (p["num_rows"], p["row_bytes"])
    rows = torch.randint(0, 256, shape, generator=g, dtype=torch.uint8).view(dtype)
    if p.get("once"):
        index = torch.randperm(p["num_out"], generator=g)
    else:
        index = torch.randint(0, max(p["num_rows"], 1), (p["num_out"],), generator=g)
    gap = torch.rand(p["num_out"], generator=g) < (p.get("gaps", 0.0) if p["num_rows"] else 2.0)
    index = index.to(torch.int32).masked_fill_(gap, -1)
    return {
        "": (rows, index),
        "int64_index": (rows, index.long()),
        "narrow": (rows[:, :7].contiguous(), index),
        "strided": (rows[:, :16], index),
        "flat": (rows.flatten(), index),
    }[p.get("wrong", "")]
