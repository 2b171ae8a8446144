"""List scheduling of tasks that share resources.

A task asks for a share of each resource while it runs (1: all of it). Tasks are served in order of
priority: each runs as fast as what is left allows, so two kernels that need the same cores take
turns, and a transfer runs beside a product at full speed. Time advances from one completion to
the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_TINY = 1e-9


@dataclass
class Task:
    """One kernel: seconds when alone, shares of resources, tasks that come before it.

    Args:
        name: what a timeline shows.
        seconds: time when nothing else runs.
        demand: share of each resource, 0 to 1.
        after: indices of tasks that must have ended.
        kept: share of its rate it keeps while a task of the other kind (compute, transfer) runs.
        transfer: it moves data between ranks.
    """

    name: str
    seconds: float
    demand: Mapping[str, float]
    after: Sequence[int] = ()
    kept: float = 1.0
    transfer: bool = False
    start: float = field(default=0.0, compare=False)
    end: float = field(default=0.0, compare=False)


def run(tasks: Sequence[Task]) -> float:
    """Schedule ``tasks`` (earlier ones first where they compete); returns the end of the last.

    Fills in ``start`` and ``end`` of every task. ValueError for a cycle.
    """
    left = [t.seconds for t in tasks]
    waits = [len(set(t.after)) for t in tasks]
    follow: list[list[int]] = [[] for _ in tasks]
    for i, t in enumerate(tasks):
        for j in set(t.after):
            follow[j].append(i)
    ready = sorted(i for i, n in enumerate(waits) if not n)
    started = [False] * len(tasks)
    now, done = 0.0, 0
    while ready:
        rates = _rates(tasks, ready)
        step = min(left[i] / r if r > _TINY else float("inf") for i, r in rates)
        now += step
        ended = []
        for i, r in rates:
            if r > _TINY and not started[i]:
                started[i], tasks[i].start = True, now - step
            left[i] -= r * step
            if left[i] <= _TINY * tasks[i].seconds:
                ended.append(i)
        for i in ended:
            tasks[i].end = now
            done += 1
            ready.remove(i)
            for j in follow[i]:
                waits[j] -= 1
                if not waits[j]:
                    ready.append(j)
        ready.sort()
    if done < len(tasks):
        raise ValueError(f"tasks: {len(tasks) - done} of {len(tasks)} wait for each other")
    return now


def _rates(tasks: Sequence[Task], ready: Sequence[int]) -> list[tuple[int, float]]:
    """Speed of every ready task, relative to running alone."""
    if len(ready) == 1:
        return [(ready[0], 1.0)]
    free: dict[str, float] = {}
    rates = []
    computes = any(not tasks[i].transfer for i in ready)
    for i in ready:
        t = tasks[i]
        rate = t.kept if t.transfer and computes else 1.0
        for r, share in t.demand.items():
            if share > _TINY:
                rate = min(rate, free.get(r, 1.0) / share)
        for r, share in t.demand.items():
            free[r] = free.get(r, 1.0) - rate * share
        rates.append((i, max(rate, 0.0)))
    return rates
