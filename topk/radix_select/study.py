"""``python -m topk.radix_select.study``: work of the streaming algorithm over adversarial rows.

One line of JSON a row kind and length (see :func:`measure`); with ``figure=FILE.svg`` also a plot
of work / row_len. It counts candidates, so it holds on every machine. With ``bandwidth=FILE.svg``
nothing is counted: what results/topk_h200.jsonl holds is plotted.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from topk.radix_select import visit
from topk.radix_select.cost import expected_work as bound
from topk.radix_select.streaming import stream

TOPK, BLOCK, SLACK, DRAWS = 1024, 4096, 4096, 5
LENGTHS = tuple(1 << n for n in range(14, 23))


def _ramp(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n, dtype=np.float32)


ROWS: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "random": lambda n, rng: rng.standard_normal(n, dtype=np.float32),
    "sorted": _ramp,
    "reversed": lambda n, rng: -_ramp(n, rng),
    "saw-tooth": lambda n, rng: (np.arange(n) % 4099).astype(np.float32),
    "shared prefix": lambda n, rng: (
        (0x3F800000 + rng.integers(0, 256, n)).astype(np.uint32).view(np.float32)
    ),
    "two-valued": lambda n, rng: rng.integers(0, 2, n).astype(np.float32),
    "all equal": lambda n, rng: np.zeros(n, np.float32),
    "all NaN": lambda n, rng: np.full(n, np.nan, np.float32),
}


def data_seeded(row: np.ndarray, block: int) -> np.ndarray:
    """The order this project does not use: seeded by the row's first bytes and its length."""
    seed = int.from_bytes(row[:2].tobytes(), "little") ^ len(row)
    return np.random.Generator(np.random.PCG64(seed)).permutation(-(-len(row) // block))


def against(order_of: Callable[[np.ndarray, int], np.ndarray], n: int, block: int) -> np.ndarray:
    """A row that rises along the visit, for an order its author can work out from the row."""
    row = np.zeros(n, np.float32)
    order = order_of(row, block)
    rising = np.arange(n, dtype=np.float32)
    at = 0
    for b in order:
        mine = row[b * block : (b + 1) * block]
        mine[:] = rising[at : at + len(mine)]
        at += len(mine)
    # The two elements that seed the order stay what they were when it was worked out.
    row[:2] = 0
    return row


def measure(kind: str, n: int, seed: int, draws: int = DRAWS) -> dict[str, object]:
    """Mean work over independent draws of the order, and the bound."""
    rng = np.random.default_rng(seed)
    row = ROWS[kind](n, rng)
    blocks = -(-n // BLOCK)
    most = 1 << max(blocks - 1, 0).bit_length()
    runs = [
        stream(row, TOPK, visit.order(blocks, visit.table(most)), BLOCK, SLACK)
        for _ in range(draws)
    ]
    return {
        "record": "topk_work", "row": kind, "row_len": n, "topk": TOPK, "block": BLOCK,
        "slack": SLACK, "draws": draws, "work": float(np.mean([r.work for r in runs])),
        "appended": float(np.mean([r.appended for r in runs])),
        "compactions": float(np.mean([r.compactions for r in runs])),
        "bound": bound(n, TOPK, BLOCK, SLACK),
    }  # fmt: skip


def measure_seeded(n: int) -> dict[str, object]:
    """The same for an order that follows from the data, on a row made against it."""
    row = against(data_seeded, n, BLOCK)
    run = stream(row, TOPK, data_seeded(row, BLOCK), BLOCK, SLACK)
    return {
        "record": "topk_work", "row": "against a data-seeded order", "row_len": n, "topk": TOPK,
        "block": BLOCK, "slack": SLACK, "draws": 1, "work": float(run.work),
        "appended": float(run.appended), "compactions": float(run.compactions),
        "bound": bound(n, TOPK, BLOCK, SLACK),
    }  # fmt: skip


def study() -> Iterator[dict[str, object]]:
    """All kinds and lengths."""
    for n in LENGTHS:
        for kind in ROWS:
            yield measure(kind, n, secrets.randbits(31))
        yield measure_seeded(n)


def plot(records: list[dict[str, object]], path: str) -> None:
    """work / row_len over row_len, and the bound."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for kind in dict.fromkeys(r["row"] for r in records):
        mine = [r for r in records if r["row"] == kind]
        seeded = str(kind).startswith("against")
        axes.plot(
            [r["row_len"] for r in mine], [r["work"] / r["row_len"] for r in mine],  # type: ignore[operator]
            "x--" if seeded else ".-", label=kind,
        )  # fmt: skip
    limit = {r["row_len"]: r["bound"] for r in records}
    axes.plot(list(limit), [b / n for n, b in limit.items()], "k:", label="bound on E[W]")  # type: ignore[operator]
    axes.set(xscale="log", yscale="log", xlabel="row length N", ylabel="W / N (counted)")
    axes.set_xscale("log", base=2)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def plot_bandwidth(records: list[dict[str, Any]], path: str) -> None:
    """Bandwidth over row length on a GPU, a line a batch size: unsorted bf16, larger topk of two.

    Args:
        records: lines of ``results/topk_h200.jsonl``; those that name no command are of kernels
            that are no longer there.
        path: of the SVG.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    best: dict[tuple[int, int], tuple[float, float]] = {}
    reads: dict[int, float] = {}
    for r in records:
        if "command" not in r or r["dtype"] != "bfloat16" or r["topk"] != min(1024, r["row_len"]):
            continue
        key = (r["rows"], r["row_len"])
        gbs = r["moved_bytes"] / min(r["ours_us"].values()) / 1e3
        best[key] = max(
            best.get(key, (0.0, 0.0)), (gbs, r["moved_bytes"] / r["torch_topk_us"] / 1e3)
        )
        if r["rows"] == 256:
            reads[r["row_len"]] = r["input_bytes"] / r["read_us"] / 1e3
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for i, rows in enumerate(sorted({rows for rows, _ in best})):
        at = sorted(n for b, n in best if b == rows)
        if len(at) > 1:
            axes.plot(at, [best[rows, n][0] for n in at], f".-C{i}", label=f"{rows} rows")
            axes.plot(at, [best[rows, n][1] for n in at], f":C{i}", linewidth=0.8)
    lengths = sorted(reads)
    axes.plot(lengths, [reads[n] for n in lengths], "k--", label="sum of the same bytes, 256 rows")
    axes.plot([], [], "k:", label="torch.topk", linewidth=0.8)
    axes.set(xlabel="row length", ylabel="GB/s (measured)")
    axes.set_xscale("log", base=2)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def main(argv: list[str]) -> None:
    """Print records; ``figure=FILE`` plots them. ``bandwidth=FILE`` plots what was measured."""
    for word in argv:
        if word.startswith("bandwidth="):
            lines = Path("results/topk_h200.jsonl").read_text().splitlines()
            return plot_bandwidth([json.loads(line) for line in lines], word.partition("=")[2])
    records = []
    for record in study():
        records.append(record)
        print(json.dumps(record), flush=True)
    for word in argv:
        if word.startswith("figure="):
            plot(records, word.removeprefix("figure="))
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
