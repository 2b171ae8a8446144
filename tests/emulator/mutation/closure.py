"""The oracle of mutants of synchronisation: which conflicting accesses of a trace nothing orders.

It shares no code with the detector of the runtime: it builds the graph of all orders a record
stream proves (``order``), and lists every pair of accesses to the same bytes, one of them a write,
that no path connects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ascendkit.emulator.records import Access, Record
from tests.emulator.mutation.conflict import Pair, atomic, meet, pair, place_of, span
from tests.emulator.mutation.inside import inside_simd, inside_simt
from tests.emulator.mutation.order import Node, ancestors_of, nodes_of


def unordered(trace: Sequence[Record]) -> set[Pair]:
    """Pairs of instructions that conflict somewhere and that no path of orders connects."""
    nodes = nodes_of(trace)
    found = _between(nodes, ancestors_of(nodes))
    for node in nodes:
        if node.first.name == "simd_vf":
            found |= inside_simd(node)
        elif node.first.name == "asc_vf_call":
            found |= inside_simt(node)
    return found


def _between(nodes: Sequence[Node], ancestors: Sequence[int]) -> set[Pair]:
    """Conflicts of nodes on different pipes or cores."""
    places: dict[tuple[object, ...], list[tuple[int, Record, Access]]] = defaultdict(list)
    for i, node in enumerate(nodes):
        seen = set()
        for r in node.records:
            for a in r.accesses:
                if a.rows and a.row_bytes and (r.line, r.name, a) not in seen:
                    seen.add((r.line, r.name, a))
                    places[place_of(r, a)].append((i, r, a))
    found: set[Pair] = set()
    for place, entries in places.items():
        if len(entries) < 2:
            continue
        low, high = np.array([span(a) for _, _, a in entries], dtype=np.uint64).T
        write = np.array([a.write for _, _, a in entries])
        stream = np.unique(
            [f"{nodes[i].core} {nodes[i].pipe}" for i, _, _ in entries], return_inverse=True
        )[1]
        for x in range(len(entries)):
            rest = slice(x + 1, None)
            hits = (low[x] < high[rest]) & (low[rest] < high[x]) & (stream[rest] != stream[x])
            hits &= write[rest] | write[x]
            for y in np.flatnonzero(hits) + x + 1:
                (i, r, a), (j, s, b) = entries[x], entries[y]
                if ancestors[i] >> j & 1 or ancestors[j] >> i & 1 or _same_unit(r, s):
                    continue
                if (atomic(r, a) and atomic(s, b)) or not meet(a, b):
                    continue
                found.add(pair(nodes[i], r, a, nodes[j], s, b, str(place[0])))
    return found


def _same_unit(r: Record, s: Record) -> bool:
    """Products and FixPipe with unit flags order themselves, fractal by fractal."""
    both = sorted((r, s), key=lambda x: x.name)
    product = next((x for x in both if x.name.startswith("asc_mmad")), None)
    fix = next((x for x in both if x.name.startswith("asc_copy_l0c2")), None)
    if product is None or fix is None:
        return False
    return bool(product.arguments[1] & 0xFF) and bool(fix.arguments[0])
