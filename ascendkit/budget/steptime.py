"""Time of a whole step: segments scheduled with their overlaps, and gaps between graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack
from ascendkit.budget.forward import Segment, merged, segments
from ascendkit.budget.gap import graph_gap
from ascendkit.budget.overlap.chains import makespan, one_after, tasks, together
from ascendkit.budget.parts import Part, StepTime, added, timed
from ascendkit.budget.plan import Plan
from ascendkit.budget.stages import flow
from ascendkit.budget.trainstep import train_time
from ascendkit.hardware import Device
from ascendkit.model import Model


def step_time(
    m: Model, p: Plan, on: Device, stack: Stack, extra: Sequence[Call] = (), gaps: bool = True
) -> StepTime:
    """Time one step. ``extra`` are the calls of a training step outside the passes.

    Args:
        gaps: add the host gap between graphs; off while that gap is being calibrated.
    """
    domain = on.scaleup_ranks or p.ranks
    found = segments(m, p, domain)
    if p.phase == "train":
        return train_time(m, p, on, stack, found, extra)
    parts = [_inference(s, halves, p, on, stack) for s, halves in _halves(m, p, domain, found)]
    once = {id(s): part.seconds / s.times for s, part in zip(found, parts, strict=True)}
    waits = 0.0
    if gaps and p.phase == "decode":
        gap = graph_gap(on.key, stack)
        if gap.seconds:
            # Every stage launches graphs of its own.
            waits = (1 + p.mtp) * gap.seconds
            parts.append(Part("host gap", p.pp * waits, p.pp * waits, (), gap.mark))
    passing = flow(m, p, found, lambda s: once[id(s)], waits)
    return replace(added(parts, merged(found, p), on, stack), between=passing.interval)


Halves = tuple[Segment, Segment] | None


def _halves(
    m: Model, p: Plan, domain: int, whole: list[Segment]
) -> Iterable[tuple[Segment, Halves]]:
    """Each segment, and the same on the larger and the smaller half of the tokens, in turns."""
    if p.interleave == 1:
        return [(s, None) for s in whole]
    parts = []
    for extra in (1, 0):
        if p.batch > 1:
            half = replace(p, batch=(p.batch + extra) // 2)
        else:
            half = replace(p, seq=(p.seq // p.cp + extra) // 2 * p.cp)
        parts.append(segments(m, half, domain))
    return [(s, (a, b)) for s, a, b in zip(whole, *parts, strict=True)]


def _inference(s: Segment, halves: Halves, p: Plan, on: Device, stack: Stack) -> Part:
    chain = timed(s.calls, on, stack)
    serial = sum(t.timing.seconds * t.call.count for t in chain) * s.times
    if halves is None:
        plan = tasks(chain, on, p.overlap)
        once = makespan(plan)
    else:
        a, b = (tasks(timed(h.calls, on, stack), on, p.overlap) for h in halves)
        plan = together(a, b)
        # Two layers in a row less one: what a layer adds once both batches are under way.
        once = makespan(together(one_after(a, a), one_after(b, b))) - makespan(plan)
    return Part(s.name, once * s.times, serial, tuple(plan))
