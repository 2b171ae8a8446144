"""The oracle of the mutation suite: which conflicting accesses of a trace nothing orders.

It shares no code with the detector of the runtime: it builds the graph of all orders a record
stream proves, closes it transitively by brute force, and lists every pair of accesses to the same
bytes, one of them a write, that no path connects.

Orders: a pipe executes in order; the k-th set of an event comes before its k-th wait; a lock comes
after the unlocks that it waits for; arrivals come before the waits they release; ``asc_sync``
comes after everything before it on its core; and the scalar pipe comes before what is issued later.
Inside a SIMD function a load or store after a store to the same bytes needs a memory barrier
between; inside a SIMT function different threads need a barrier, or a collective of their warp.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ascendkit.emulator.records import PIPES, Access, Record

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
Pair = tuple[tuple[str, str, int, bool], tuple[str, str, int, bool], str]
"""Two instructions (core, pipe, line, whether it writes) and the memory they meet in."""


@dataclass
class Node:
    """One instruction, or one whole vector function."""

    core: tuple[int, str]
    pipe: str
    records: list[Record]

    @property
    def first(self) -> Record:
        """The record that stands for the node."""
        return self.records[0]


def unordered(trace: Sequence[Record]) -> set[Pair]:
    """Pairs of instructions that conflict somewhere and that no path of orders connects."""
    nodes = _nodes(trace)
    found = _between(nodes, _ancestors(nodes))
    for node in nodes:
        if node.first.name == "simd_vf":
            found |= _inside_simd(node)
        elif node.first.name == "asc_vf_call":
            found |= _inside_simt(node)
    return found


def _nodes(trace: Sequence[Record]) -> list[Node]:
    nodes: list[Node] = []
    opened: dict[tuple[int, str], Node] = {}
    for r in trace:
        core = (r.block, r.core)
        inside = opened.get(core)
        if inside is not None and r.pipe == "V":
            inside.records.append(r)
            if r.name in ("simd_vf.end", "asc_vf_call.end"):
                del opened[core]
            continue
        node = Node(core, r.pipe, [r])
        nodes.append(node)
        if r.name in ("simd_vf", "asc_vf_call"):
            opened[core] = node
    return nodes


def _ancestors(nodes: Sequence[Node]) -> list[int]:
    """For every node the set, as bits, of the nodes that come before it on every schedule."""
    before: list[set[int]] = [set() for _ in nodes]
    last: dict[tuple[tuple[int, str], str], int] = {}
    everything: dict[tuple[int, str], int] = {}
    scalar: dict[tuple[int, str], int] = {}
    sets: dict[object, list[int]] = defaultdict(list)
    waits: dict[object, int] = defaultdict(int)
    unlocks: dict[object, list[tuple[int, int]]] = defaultdict(list)
    arrivals: dict[object, list[int]] = defaultdict(list)
    pending: list[tuple[int, object, int]] = []
    kinds = {n.core for n in nodes}
    for i, node in enumerate(nodes):
        r, core = node.first, node.core
        for edge in (last.get((core, node.pipe)), everything.get(core), scalar.get(core)):
            if edge is not None:
                before[i].add(edge)
        if r.name == "asc_sync":
            before[i] |= {at for (c, _), at in last.items() if c == core}
            everything[core] = i
        elif r.name == "asc_sync_notify":
            sets[core, r.pipe, PIPES[r.arguments[0]], r.arguments[1]].append(i)
        elif r.name == "asc_sync_wait":
            key = (core, PIPES[r.arguments[0]], r.pipe, r.arguments[1])
            if waits[key] < len(sets[key]):
                before[i].add(sets[key][waits[key]])
            waits[key] += 1
        elif r.name == "asc_unlock":
            unlocks[core, r.arguments[1]].append((r.arguments[0], i))
        elif r.name == "asc_lock":
            passed = unlocks[core, r.arguments[1]]
            before[i] |= {at for number, at in passed if number <= r.arguments[0]}
        elif r.name.endswith("_arrive"):
            for target in _targets(r, core, kinds):
                arrivals[target].append(i)
        elif r.name.endswith("_wait"):
            scope = r.name.removeprefix("asc_sync_").removesuffix("_wait")
            counter = (scope, core, r.arguments[1])
            pending.append((i, counter, waits[counter]))
            waits[counter] += 1
        last[core, node.pipe] = i
        if node.pipe == "S":
            scalar[core] = i
    for i, counter, number in pending:
        before[i] |= set(_released_by(arrivals[counter], nodes, number))
    return _close(before)


def _targets(r: Record, core: tuple[int, str], kinds: set[tuple[int, str]]) -> Iterable[object]:
    """The counters that an arrival adds to."""
    block, name = core
    scope, number = r.name.removeprefix("asc_sync_").removesuffix("_arrive"), r.arguments[1]
    cube = name == "AIC"
    if scope == "inter":
        return [(scope, other, number) for other in kinds if (other[1] == "AIC") == cube]
    if scope == "intra":
        if cube:
            return [(scope, (block, f"AIV{number // 16}"), number % 16)]
        return [(scope, (block, "AIC"), number % 16 + 16 * int(name[3:]))]
    if scope == "subblock":
        return [(scope, (block, f"AIV{sub}"), number) for sub in (0, 1)]
    if cube:
        return [(scope, (block, f"AIV{sub}"), number) for sub in (0, 1)]
    return [(scope, (block, "AIC"), number)]


def _released_by(arrived: Sequence[int], nodes: Sequence[Node], number: int) -> Iterable[int]:
    """The arrivals that the wait ``number`` (from 0) needs: that many of every core that sends."""
    seen: dict[tuple[int, str], int] = defaultdict(int)
    for i in arrived:
        core = nodes[i].core
        if seen[core] <= number:
            yield i
        seen[core] += 1


def _close(before: Sequence[set[int]]) -> list[int]:
    """Transitive closure; edges from later records exist between blocks, hence the order."""
    waiting = [len(b) for b in before]
    after: list[list[int]] = [[] for _ in before]
    for i, b in enumerate(before):
        for j in b:
            after[j].append(i)
    closed = [0] * len(before)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    done = 0
    while ready:
        j = ready.pop()
        done += 1
        for i in after[j]:
            closed[i] |= closed[j] | 1 << j
            waiting[i] -= 1
            if waiting[i] == 0:
                ready.append(i)
    assert done == len(before), "the trace contradicts itself"
    return closed


# ---- conflicts ----------------------------------------------------------------------------------


def _place(r: Record, a: Access) -> tuple[object, ...]:
    """The memory an access is in."""
    if a.space == "GM":
        return ("GM",)
    return (a.space, r.block, a.sub if a.space == "UB" else 0)


def _atomic(r: Record, a: Access) -> bool:
    """Whether the access adds into memory, so that its order among its kind does not matter."""
    if r.name == "raw":
        return bool(r.arguments[1] & 2)
    adds = {"asc_copy_ub2gm_align": r.arguments[0], "asc_copy_l0c2gm": r.arguments[1] >> 8}
    return a.space == "GM" and a.write and adds.get(r.name, 0) > 0


def _span(a: Access) -> tuple[int, int]:
    steps = [0, a.stride * (a.rows - 1)] if a.rows else [0]
    return a.base + min(steps), a.base + max(steps) + a.row_bytes


def _meet(a: Access, b: Access) -> bool:
    """Whether two accesses of one memory share a byte."""
    if a.rows > 1 and b.rows > 1 and a.rows * b.rows > 1 << 16:
        return True  # bounding boxes overlap, and are too many rows to compare
    for i in range(a.rows):
        low = a.base + i * a.stride
        for j in range(b.rows):
            other = b.base + j * b.stride
            if low < other + b.row_bytes and other < low + a.row_bytes:
                return True
    return False


def _between(nodes: Sequence[Node], ancestors: Sequence[int]) -> set[Pair]:
    """Conflicts of nodes on different pipes or cores."""
    places: dict[tuple[object, ...], list[tuple[int, Record, Access]]] = defaultdict(list)
    for i, node in enumerate(nodes):
        seen = set()
        for r in node.records:
            for a in r.accesses:
                if a.rows and a.row_bytes and (r.line, r.name, a) not in seen:
                    seen.add((r.line, r.name, a))
                    places[_place(r, a)].append((i, r, a))
    found: set[Pair] = set()
    for place, entries in places.items():
        if len(entries) < 2:
            continue
        low, high = np.array([_span(a) for _, _, a in entries], dtype=np.uint64).T
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
                if (_atomic(r, a) and _atomic(s, b)) or not _meet(a, b):
                    continue
                found.add(_pair(nodes[i], r, a, nodes[j], s, b, str(place[0])))
    return found


def _same_unit(r: Record, s: Record) -> bool:
    """Products and FixPipe with unit flags order themselves, fractal by fractal."""
    both = sorted((r, s), key=lambda x: x.name)
    product = next((x for x in both if x.name.startswith("asc_mmad")), None)
    fix = next((x for x in both if x.name.startswith("asc_copy_l0c2")), None)
    if product is None or fix is None:
        return False
    return bool(product.arguments[1] & 0xFF) and bool(fix.arguments[0])


def _pair(m: Node, r: Record, a: Access, n: Node, s: Record, b: Access, space: str) -> Pair:
    one = (m.core[1], m.pipe, r.line, a.write)
    two = (n.core[1], n.pipe, s.line, b.write)
    return (min(one, two), max(one, two), space)


def _inside_simd(node: Node) -> set[Pair]:
    """Stores and what follows them without a barrier, in one vector function."""
    found: set[Pair] = set()
    stores: list[tuple[Record, Access]] = []
    for r in node.records:
        if r.name == "asc_mem_bar":
            stores.clear()
        for a in r.accesses:
            for s, b in stores:
                if s is r or a.write or _span(a)[0] >= _span(b)[1] or _span(b)[0] >= _span(a)[1]:
                    continue
                if _meet(a, b):
                    found.add(_pair(node, r, a, node, s, b, a.space))
            if a.write:
                stores.append((r, a))
    return found


def _inside_simt(node: Node) -> set[Pair]:
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
                buckets[epoch[one], _place(r, row)].append((one, turn[one], r, row))
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
                    if other == thread or (_atomic(r, a) and _atomic(s, b)):
                        continue
                    if other // WARP == thread // WARP and then != when:
                        continue
                    found.add(_pair(node, r, a, node, s, b, str(place[0])))
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
