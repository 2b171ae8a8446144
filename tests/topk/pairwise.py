"""Seeded samples in which every pair of settings occurs: the small stand-in for a full grid."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any


def pairwise(axes: Mapping[str, Sequence[Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Rows that cover all pairs, greedily: each row takes the best of a few random candidates."""
    names = list(axes)
    left = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in range(len(axes[a]))
        for y in range(len(axes[b]))
    }
    rows = []
    while left:
        a, x, b, y = rng.choice(sorted(left))
        best: dict[str, int] = {}
        gain = -1
        for _ in range(12):
            row = {n: rng.randrange(len(axes[n])) for n in names} | {a: x, b: y}
            new = sum((p, row[p], q, row[q]) in left for p, q in itertools.combinations(names, 2))
            if new > gain:
                best, gain = row, new
        left -= {(p, best[p], q, best[q]) for p, q in itertools.combinations(names, 2)}
        rows.append({n: axes[n][i] for n, i in best.items()})
    return rows
