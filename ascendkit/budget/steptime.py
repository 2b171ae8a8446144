"""Time of a whole step: segments scheduled with their overlaps, and gaps between graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack
from ascendkit.budget.forward import Segment, segments
from ascendkit.budget.gap import graph_gap
from ascendkit.budget.overlap.chains import makespan, one_after, tasks, together
from ascendkit.budget.parts import Part, StepTime, added, timed
from ascendkit.budget.plan import Plan
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
    parts = [_inference(s, half, p, on, stack) for s, half in _halves(m, p, domain, found)]
    calls = [replace(c, count=c.count * s.times / p.pp) for s in found for c in s.calls]
    if gaps and p.phase == "decode":
        gap = graph_gap(on.key, stack)
        if gap.seconds:
            graphs = 1 + p.mtp
            parts.append(Part("host gap", graphs * gap.seconds, graphs * gap.seconds, (), gap.mark))
    return added(parts, calls, on, stack)


def _halves(
    m: Model, p: Plan, domain: int, whole: list[Segment]
) -> Iterable[tuple[Segment, Segment | None]]:
    """Each segment, and the same segment on half of the tokens where two batches take turns."""
    if p.interleave == 1:
        return [(s, None) for s in whole]
    half = replace(p, batch=p.batch // 2) if p.batch > 1 else replace(p, seq=p.seq // 2)
    return list(zip(whole, segments(m, half, domain), strict=True))


def _inference(s: Segment, half: Segment | None, p: Plan, on: Device, stack: Stack) -> Part:
    chain = timed(s.calls, on, stack)
    serial = sum(t.timing.seconds * t.call.count for t in chain) * s.times / p.pp
    if half is None:
        plan = tasks(chain, on, p.overlap)
        once = makespan(plan)
    else:
        a = tasks(timed(half.calls, on, stack), on, p.overlap)
        plan = together(a, a)
        # Two layers in a row less one: what a layer adds once both batches are under way.
        once = makespan(together(one_after(a, a), one_after(a, a))) - makespan(plan)
    return Part(s.name, once * s.times / p.pp, serial, tuple(plan))
