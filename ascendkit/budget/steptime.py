"""Time of a whole step: segments scheduled with their overlaps, ranks in a pipeline, gaps added."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ascendkit.budget.backward import backward
from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.curves.work import key_of
from ascendkit.budget.forward import Segment, segments
from ascendkit.budget.gap import graph_gap
from ascendkit.budget.overlap.chains import Timed, makespan, one_after, tasks, together, transfers
from ascendkit.budget.overlap.fluid import Task
from ascendkit.budget.overlap.pipeline import Run, Stage, simulate
from ascendkit.budget.plan import Plan
from ascendkit.hardware import Device
from ascendkit.model import Model


@dataclass(frozen=True)
class Part:
    """A piece of the step that adds to its time: a kind of layer, a bubble, a gap.

    Args:
        name: line of the report.
        seconds: how much longer the step is for it.
        serial: seconds of its kernels one after another.
        tasks: one run of it, scheduled; for the timeline.
        mark: origin of its time where it is not made of kernels.
    """

    name: str
    seconds: float
    serial: float
    tasks: tuple[Task, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step.

    Args:
        parts: pieces that add up to ``seconds``.
        shares: share of kernel and gap time by mark.
        sigma: standard error of log(seconds), by error propagation over kinds of kernels.
        pipeline: the simulated pipeline of a training step.
    """

    parts: tuple[Part, ...]
    shares: dict[str, float]
    sigma: float
    pipeline: Run | None = field(default=None, repr=False)

    @property
    def seconds(self) -> float:
        """Expected time."""
        return sum(p.seconds for p in self.parts)

    @property
    def serial(self) -> float:
        """Kernels one after another, gaps included."""
        return sum(p.serial for p in self.parts)

    def quantile(self, z: float) -> float:
        """Time ``z`` standard errors above the expected one."""
        return self.seconds * math.exp(z * self.sigma)

    @property
    def claimed(self) -> bool:
        """Whether at most a fifth of the time is transferred or assumed."""
        return self.shares.get("T", 0.0) + self.shares.get("A", 0.0) <= 0.2


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
        return _train(m, p, on, stack, found, extra)
    parts = [_inference(s, half, p, on, stack) for s, half in _halves(m, p, domain, found)]
    calls = [replace(c, count=c.count * s.times / p.pp) for s in found for c in s.calls]
    if gaps and p.phase == "decode":
        gap = graph_gap(on.key, stack)
        if gap.seconds:
            graphs = 1 + p.mtp
            parts.append(Part("host gap", graphs * gap.seconds, graphs * gap.seconds, (), gap.mark))
    return _added(parts, calls, on, stack)


def timed(calls: Iterable[Call], on: Device, stack: Stack) -> list[Timed]:
    """Calls with their times."""
    return [Timed(c, timing(c, on, stack)) for c in calls]


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


def _train(
    m: Model, p: Plan, on: Device, stack: Stack, found: list[Segment], extra: Sequence[Call]
) -> StepTime:
    layer: dict[int, Stage] = {}
    ends: dict[str, Stage] = {}
    calls: list[Call] = []
    drawn: dict[str, tuple[Task, ...]] = {}
    for s in found:
        fwd = timed(s.calls, on, stack)
        back = timed(backward(list(s.calls), p.recompute), on, stack)
        calls += [replace(t.call, count=t.call.count * s.times / p.pp) for t in (*fwd, *back)]
        f, b = tasks(fwd, on, p.overlap), tasks(back, on, p.overlap)
        weight = sum(t.timing.seconds * t.call.count for t in back if _weights(t.call))
        pair = together(b, f)
        stage = Stage(makespan(f), makespan(b), weight, makespan(pair))
        drawn[s.name] = tuple(pair)
        for i in s.at:
            layer[i] = stage
        if not s.at:
            ends[s.name] = stage
    losses = [c for c in extra if c.part != "optimizer"]
    updates = [c for c in extra if c.part == "optimizer"]
    stages = _stages(m, p, layer, ends, _seconds(losses, on, stack) * p.pp)
    run = simulate(p.schedule, stages, p.pp, p.micro_batches, p.vp)
    serial = p.micro_batches * sum(_seconds([c], on, stack) for c in (*calls, *losses))
    busiest = max(run.busy)
    opt = _seconds([c for c in updates if not transfers(c)], on, stack)
    sync = _seconds([c for c in updates if transfers(c)], on, stack)
    # Gradients and weights travel beside the last backward passes of the rank.
    exposed = max(sync - max(s.backward for s in stages), 0.0)
    parts = [
        Part("micro-batches", busiest, serial, drawn.get("layer mla") or max(drawn.values(), key=len)),
        Part("pipeline bubble", run.seconds - busiest, 0.0),
        Part("optimizer", opt, opt),
        Part("data-parallel traffic, exposed", exposed, sync),
    ]
    everything = [replace(c, count=c.count * p.micro_batches) for c in (*calls, *losses)]
    return replace(_added(parts, [*everything, *updates], on, stack), pipeline=run)


def _weights(c: Call) -> bool:
    return bool(c.params.get("wgrad") or c.params.get("accumulate"))


def _seconds(calls: Iterable[Call], on: Device, stack: Stack) -> float:
    return sum(timing(c, on, stack).seconds * c.count for c in calls)


def _stages(
    m: Model, p: Plan, layer: dict[int, Stage], ends: dict[str, Stage], loss: float
) -> list[Stage]:
    """Chunks of whole layers; where they do not divide, the ends of the model get fewer."""
    chunks = p.pp * p.vp
    base, more = divmod(m.num_hidden_layers, chunks)
    sizes = [base] * chunks
    by_middle = sorted(range(chunks), key=lambda i: (abs(2 * i - chunks + 1), i))
    for i in by_middle[:more]:
        sizes[i] += 1
    out, at = [], 0
    send = ends.get("pipeline", Stage(0, 0, 0, 0)).forward
    for i, size in enumerate(sizes):
        mine = [layer[j] for j in range(at, at + size)]
        at += size
        if i == 0 and "embedding" in ends:
            mine.append(ends["embedding"])
        if i == chunks - 1:
            mine += [ends[n] for n in ("head", "draft") if n in ends]
            mine.append(Stage(0, loss, 0, loss))
        total = [sum(getattr(s, n) for s in mine) for n in ("forward", "backward", "weight", "both")]
        out.append(Stage(*total, send=send))
    return out


def _added(parts: list[Part], calls: list[Call], on: Device, stack: Stack) -> StepTime:
    """Shares by mark, and the error of the sum: one error for each kind of kernel."""
    by_mark: dict[str, float] = defaultdict(float)
    by_kind: dict[object, float] = defaultdict(float)
    for c in calls:
        got = timing(c, on, stack)
        seconds = got.seconds * c.count
        by_mark[got.mark] += seconds
        by_kind[key_of(c, on), got.mark] += seconds * got.sigma
    for part in parts:
        if part.mark:
            by_mark[part.mark] += part.seconds
            by_kind[part.name] += part.seconds * 0.3
    total = sum(by_mark.values()) or 1.0
    sigma = math.sqrt(sum(v * v for v in by_kind.values())) / total
    return StepTime(tuple(parts), {k: v / total for k, v in sorted(by_mark.items())}, sigma)


