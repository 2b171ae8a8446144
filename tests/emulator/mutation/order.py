"""The graph of all orders that a record stream proves, closed transitively by brute force.

Orders: a pipe executes in order; the k-th set of an event comes before its k-th wait; a lock comes
after the unlocks that it waits for; arrivals come before the waits they release; ``asc_sync``
comes after everything before it on its core; and the scalar pipe comes before what is issued later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ascendkit.emulator.records import PIPES, Record


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


def nodes_of(trace: Sequence[Record]) -> list[Node]:
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


def ancestors_of(nodes: Sequence[Node]) -> list[int]:
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
