"""Random shapes near the edges of alignments, for kernels that scatter rows to fused places.

    python -m tests.emulator.edge_shapes [--count 200] [--seed N] [--out FILE]

A shape is a row width, numbers of tokens and of places, and how many rows are padding; widths are
one below, on and one above an alignment, numbers of tokens may be 0 and 1. Every output is a part
of a larger tensor. Wanted: the values of a plain loop, nothing around the output changed, and no
finding of the judges.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import ascendkit
from ascendkit.emulator.judged import judged
from ascendkit.testing import around

GUARD = 64
"""Elements before and behind an output."""
CANARY = 77.0


@dataclass(frozen=True)
class Shape:
    """One launch; ``padding`` rows of the output belong to no token and hold zeros."""

    hidden: int
    tokens: int
    topk: int
    padding: int

    @property
    def rows(self) -> int:
        """Rows of the output, if every token has all its places."""
        return self.tokens * self.topk + self.padding


def shapes(seed: int, widths: int = 12) -> Iterator[Shape]:
    """Shapes without end; a kernel is compiled for each of few widths."""
    draw = random.Random(seed)
    edges = sorted({n for a in (16, 32, 64, 128, 512) for n in around(a) if n > 0})
    hidden = draw.sample(edges, min(widths, len(edges)))
    while True:
        tokens = draw.choice([0, 1, 2, 3, 7, *around(32), draw.randint(1, 70)])
        yield Shape(draw.choice(hidden), tokens, draw.choice([1, 3]), draw.choice([0, 1, 5, 31]))


def wrong(shape: Shape, seed: int) -> str:
    """What is wrong with one launch; empty: nothing."""
    from tilekernels.expand_to_fused import ascend

    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(shape.tokens, shape.hidden, generator=draw).bfloat16()
    order = torch.randperm(shape.rows, generator=draw).to(torch.int32)
    places = order[: shape.tokens * shape.topk].view(shape.tokens, shape.topk).contiguous()
    experts = torch.zeros(shape.rows, dtype=torch.int32)
    experts[order[shape.tokens * shape.topk :].long()] = -1
    if shape.tokens:  # one place less
        experts[int(places[0, 0])] = -1
        places[0, 0] = -1
    want = torch.zeros(shape.rows, shape.hidden, dtype=torch.bfloat16)
    for token, row in enumerate(places.tolist()):
        for place in row:
            if place >= 0:
                want[place] = x[token]
    size = shape.rows * shape.hidden
    storage = torch.full((size + 2 * GUARD,), CANARY, dtype=torch.bfloat16)
    out = storage[GUARD : GUARD + size].view(shape.rows, shape.hidden)
    with ascendkit.use("emulator"), judged() as kept:
        ascend.run(x, places, experts, out=out)
    around_it = torch.cat([storage[:GUARD], storage[GUARD + size :]])
    if not torch.equal(out, want):
        return "wrong values"
    if not bool((around_it == CANARY).all()):
        return "bytes around the output changed"
    return kept.findings[0].code if kept.findings else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run many shapes; 1 if one is wrong."""
    parser = argparse.ArgumentParser("python -m tests.emulator.edge_shapes")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--out", type=Path, help="write the record to this file")
    args = parser.parse_args(argv)
    start, bad, seen = time.perf_counter(), [], set()
    for number, shape in zip(range(args.count), shapes(args.seed)):
        seen.add(shape)
        what = wrong(shape, args.seed + number)
        if what:
            bad.append({**asdict(shape), "seed": args.seed + number, "wrong": what})
            print(bad[-1], flush=True)
    from ascendkit.bench.environment import commit

    row = {
        "record": "emulator_edge_shapes",
        "op": "expand_to_fused",
        "shapes": args.count,
        "different": len(seen),
        "empty": sum(s.tokens == 0 for s in seen),
        "wrong": bad,
        "seed": args.seed,
        "wall_s": round(time.perf_counter() - start, 1),
        "command": f"python -m tests.emulator.edge_shapes --count {args.count} --seed {args.seed}",
        "commit": commit(),
    }
    if args.out:
        args.out.write_text(json.dumps(row) + "\n")
    print(json.dumps(row, indent=1))
    return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
