"""Rows of our own top-k on the H200, from its measured records: a curve over row length a batch.

Of every shape the fastest layout of all records that name their command; the oldest do not, and
their kernels are no longer in the tree. Rows of fewer than four times topk are left out: their
time follows topk, not the row, and the curve is one over rows.

    python results/budget_curves/extract_topk.py    # after new lines in results/topk_h200.jsonl
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "results" / "topk_h200.jsonl"
TARGET = ROOT / "configs" / "data" / "kernels" / "h200.own.yaml"
HEADER = """\
# Times of this project's kernels on NVIDIA H200, one node of a graph; a line is one series.
# Written by results/budget_curves/extract_topk.py from results/topk_h200.jsonl.
schema: ascendkit.kernels.v1
floor_us: 0.99
floor_source: graph_node
# Ops whose rows here take the place of those of other implementations on this device.
instead: [topk.radix_select]
sources:
  graph_node: {ref: 'own runs on H200, smallest kernel in a CUDA graph', kind: 'measured here'}
  own_topk: {ref: 'results/topk_h200.jsonl, CUDA graphs, medians', kind: 'measured here'}
series:
"""


def text(records):
    """The file for these records."""
    fastest = {}
    for r in records:
        ours = r.get("record") == "topk_time" and r.get("ours_us") and "command" in r
        if ours and 4 * r["topk"] <= r["row_len"]:
            series = (r["rows"], r["topk"], r["dtype"], bool(r["sorted"]))
            times = r["ours_us"]
            us = min(times.values()) if isinstance(times, dict) else times
            at = fastest.setdefault(series, {})
            at[r["row_len"]] = min(us, at.get(r["row_len"], us))
    lines = [_line(series, dict(sorted(at.items()))) for series, at in sorted(fastest.items())]
    return HEADER + "".join(lines)


def _line(series, at):
    rows, topk, dtype, ordered = series
    params = dict(rows=rows, row_len="$n", num_topk=topk)
    params |= dict(value_bytes=4) if dtype == "float32" else {}
    params |= dict(return_value="true") if ordered else {}
    flow = ", ".join(f"{k}: {v}" for k, v in params.items())
    name = f"topk_{dtype}_{rows}_k{topk}" + "_sorted" * ordered
    return (
        f"- {{id: {name}, source: own_topk, calls: [{{op: topk.radix_select, params: {{{flow}}}}}],"
        f" at: {{n: {list(at)}}}, us: {list(at.values())}}}\n"
    )


def main():
    TARGET.write_text(text(map(json.loads, RECORDS.read_text().splitlines())))


if __name__ == "__main__":
    main()
