"""A step in Chrome's trace format, for Perfetto: kernels of one run of each segment, by resource.

A training step also has its pipeline: one track a rank. Times are microseconds.
"""

from __future__ import annotations

from typing import Any

from ascendkit.budget.overlap.fluid import Task, run
from ascendkit.budget.step import Step

MAX_BARS = 40_000
"""Pipeline bars beyond this many are left out, and the trace says so."""


def trace(steps: list[Step]) -> dict[str, Any]:
    """All steps, one process each."""
    events: list[dict[str, Any]] = []
    for pid, step in enumerate(steps):
        events += _process(pid, step)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def lane(task: Task) -> str:
    """The resource a task is drawn on: the link it uses, or the unit that computes."""
    if task.transfer:
        return "scale-out" if "scaleout" in task.demand else "scale-up"
    if "aiv" in task.demand and "aic" not in task.demand:
        return "vector"
    return "compute"


def _process(pid: int, step: Step) -> list[dict[str, Any]]:
    title = f"{step.model.key} {step.plan.phase} on {step.device.key}"
    out: list[dict[str, Any]] = [_name("process_name", pid, 0, title)]
    if step.time is None:
        return out + _serial(pid, step)
    lanes: dict[str, int] = {}
    at = 0.0
    for part in step.time.parts:
        if not part.tasks:
            if part.seconds:
                tid = lanes.setdefault("host and pipeline", len(lanes))
                out.append(_event(part.name, pid, tid, at, part.seconds))
                at += part.seconds
            continue
        run(part.tasks)
        for task in part.tasks:
            tid = lanes.setdefault(lane(task), len(lanes))
            length = task.end - task.start
            out.append(_event(task.name, pid, tid, at + task.start, length, segment=part.name))
        at += max(t.end for t in part.tasks)
    out += [_name("thread_name", pid, tid, name) for name, tid in lanes.items()]
    return out + _pipeline(pid, step, len(lanes))


def _pipeline(pid: int, step: Step, first: int) -> list[dict[str, Any]]:
    assert step.time is not None
    if step.time.pipeline is None or step.plan.pp == 1:
        return []
    bars = step.time.pipeline.bars
    out = [_name("thread_name", pid, first + r, f"pipeline rank {r}") for r in range(step.plan.pp)]
    if len(bars) > MAX_BARS:
        out.append(_name("process_labels", pid, 0, f"first {MAX_BARS} of {len(bars)} bars"))
    for bar in bars[:MAX_BARS]:
        name = "+".join(w.kind for w in bar.slot)
        micro = ", ".join(f"{w.kind}{w.direction}.{w.micro}" for w in bar.slot)
        out.append(_event(name, pid, first + bar.rank, bar.start, bar.end - bar.start, micro=micro))
    return out


def _serial(pid: int, step: Step) -> list[dict[str, Any]]:
    out, at = [_name("thread_name", pid, 0, "operators in series")], 0.0
    for line in step.lines:
        out.append(_event(line.label, pid, 0, at, line.seconds, bound=line.bound))
        at += line.seconds
    return out


def _event(
    name: str, pid: int, tid: int, start: float, seconds: float, **args: str
) -> dict[str, Any]:
    return {
        "name": name, "ph": "X", "pid": pid, "tid": tid,
        "ts": round(start * 1e6, 4), "dur": round(seconds * 1e6, 4), "args": args,
    }  # fmt: skip


def _name(kind: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    key = "labels" if kind == "process_labels" else "name"
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {key: text}}
