"""Conflicts inside one vector function.

Inside a SIMD function a load after a store to the same bytes needs a memory barrier between;
inside a SIMT function different threads need a barrier, or a collective of their warp.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ascendkit.emulator.records import Access, Record
from tests.emulator.mutation.conflict import Pair, atomic, meet, pair, place_of, span
from tests.emulator.mutation.order import Node

WARP = 32
COLLECTIVES = {
    "asc_shfl_xor",
    "asc_reduce_add.simt",
    "asc_reduce_max.simt",
    "asc_reduce_min.simt",
    "asc_ballot",
    "asc_activemask",
    "coalesced_threads.sync",
}


def inside_simd(node: Node) -> set[Pair]:
    """Stores and what follows them without a barrier, in one vector function."""
    found: set[Pair] = set()
    stores: list[tuple[Record, Access]] = []
    for r in node.records:
        if r.name == "asc_mem_bar":
            stores.clear()
        for a in r.accesses:
            for s, b in stores:
                if s is r or a.write or span(a)[0] >= span(b)[1] or span(b)[0] >= span(a)[1]:
                    continue
                if meet(a, b):
                    found.add(pair(node, r, a, node, s, b, a.space))
            if a.write:
                stores.append((r, a))
    return found


def inside_simt(node: Node) -> set[Pair]:
    """Accesses of different threads that neither a barrier nor a collective separates."""
    epoch: dict[int, int] = defaultdict(int)
    turn: dict[int, int] = defaultdict(int)
    buckets: dict[object, list[tuple[int, int, Record, Access]]] = defaultdict(list)
    for r in node.records:
        thread = r.arguments[0]
        if r.name == "asc_syncthreads":
            epoch[thread] += 1
            turn[thread] = 0
        elif r.name in COLLECTIVES:
            turn[thread] += 1
        elif r.name == "raw":
            for row, one in _threads(r):
                buckets[epoch[one], place_of(r, row)].append((one, turn[one], r, row))
    found: set[Pair] = set()
    for (_, place), entries in buckets.items():
        writers: dict[int, list[tuple[int, int, Record, Access]]] = defaultdict(list)
        for entry in entries:
            if entry[3].write:
                for byte in _bytes(entry[3]):
                    writers[byte].append(entry)
        for thread, when, r, a in entries:
            for byte in _bytes(a):
                for other, then, s, b in writers.get(byte, ()):
                    if other == thread or (atomic(r, a) and atomic(s, b)):
                        continue
                    if other // WARP == thread // WARP and then != when:
                        continue
                    found.add(pair(node, r, a, node, s, b, str(place[0])))
    return found


def _threads(r: Record) -> Iterable[tuple[Access, int]]:
    """A raw record's rows with the thread of each: the step between threads is signed."""
    a = r.accesses[0]
    step = r.arguments[1] >> 8 & 0xFFFFFFFF
    for i in range(a.rows):
        thread = (r.arguments[0] + step * i) & 0xFFFFFFFF
        yield Access(a.space, a.write, a.sub, 1, a.base + i * a.stride, a.row_bytes, 0), thread


def _bytes(a: Access) -> Iterable[int]:
    for i in range(a.rows):
        yield from range(a.base + i * a.stride, a.base + i * a.stride + a.row_bytes)
