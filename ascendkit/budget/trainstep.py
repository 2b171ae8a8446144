"""Time of a training step: chunks of layers, the pipeline over ranks, optimizer and traffic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ascendkit.budget.backward import backward
from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.forward import Segment
from ascendkit.budget.overlap.chains import makespan, tasks, together, transfers
from ascendkit.budget.overlap.fluid import Task
from ascendkit.budget.overlap.pipeline import Stage, simulate
from ascendkit.budget.parts import Part, StepTime, added, timed
from ascendkit.budget.plan import Plan
from ascendkit.budget.stages import chunks
from ascendkit.hardware import Device
from ascendkit.model import Model


def train_time(
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
        Part("micro-batches", busiest, serial, max(drawn.values(), key=len)),
        Part("pipeline bubble", run.seconds - busiest, 0.0),
        Part("optimizer", opt, opt),
        Part("data-parallel traffic, exposed", exposed, sync),
    ]
    everything = [replace(c, count=c.count * p.micro_batches) for c in (*calls, *losses)]
    return replace(added(parts, [*everything, *updates], on, stack), pipeline=run)


def _weights(c: Call) -> bool:
    return bool(c.params.get("wgrad") or c.params.get("accumulate"))


def _seconds(calls: Iterable[Call], on: Device, stack: Stack) -> float:
    return sum(timing(c, on, stack).seconds * c.count for c in calls)


def _stages(
    m: Model, p: Plan, layer: dict[int, Stage], ends: dict[str, Stage], loss: float
) -> list[Stage]:
    out = []
    send = ends.get("pipeline", Stage(0, 0, 0, 0)).forward
    for chunk in chunks(m, p):
        mine = [layer[j] for j in chunk.layers]
        if chunk.first and "embedding" in ends:
            mine.append(ends["embedding"])
        if chunk.last:
            mine += [ends[n] for n in ("head", "draft") if n in ends]
            mine.append(Stage(0, loss, 0, loss))
        out.append(
            Stage(
                sum(s.forward for s in mine),
                sum(s.backward for s in mine),
                sum(s.weight for s in mine),
                sum(s.both for s in mine),
                send,
            )
        )
    return out
