"""A budget as plain containers: what ``output=json`` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ascendkit.budget.roofline import RESOURCES
from ascendkit.budget.step import Line, Step


def as_json(steps: Sequence[Step], acceptance: float | None) -> dict[str, Any]:
    """The whole report as plain containers; times in seconds, sizes in bytes."""
    first = steps[0]
    return {
        "schema": "ascendkit.budget.v1",
        "model": first.model.key,
        "plan": dataclasses.asdict(first.plan) | {"dp": first.plan.dp},
        "time": "bound: peak rates, operators in series"
        if first.time is None
        else "measured kernels, overlaps, pipeline and gaps",
        "devices": [_device(step, acceptance) for step in steps],
    }


def _device(step: Step, acceptance: float | None) -> dict[str, Any]:
    m = step.memory
    have = step.device.hbm_bytes
    return {
        "device": step.device.key,
        "step_s": step.seconds,
        "interval_s": step.interval,
        "serial_s": step.serial,
        **_curves(step),
        "busy": step.busy,
        "unknown": list(step.unknown),
        "lower_bound": step.lower_bound,
        "tokens": step.tokens,
        "tokens_per_s_rank": step.rate,
        "ranks_per_package": step.device.ranks_per_package,
        "tpot_s": None if acceptance is None else step.seconds / (1 + acceptance),
        "mfu": step.mfu,
        "mfu_counts": step.mfu_text,
        "memory": dataclasses.asdict(m) | {"total": m.total, "hbm": have},
        "fits": None if have is None else m.total <= have,
        "operators": [_line(line, step) for line in step.lines],
        "warnings": list(step.warnings),
    }


def _curves(step: Step) -> dict[str, Any]:
    if step.time is None:
        return {}
    return {
        "p10_s": step.time.band[0],
        "p90_s": step.time.band[1],
        "marks": step.time.shares,
        "claimed": step.time.claimed,
        "parts": [
            {"name": p.name, "seconds": p.seconds, "serial_s": p.serial} for p in step.time.parts
        ],
    }


def _line(line: Line, step: Step) -> dict[str, Any]:
    return {
        "label": line.label,
        "ops": sorted(line.ops),
        "calls": line.calls,
        "flops": line.flops,
        "bytes": line.bytes,
        "link": line.link,
        "resource_s": {r: line.resource_s[r] for r in RESOURCES if r in line.resource_s},
        "unknown": sorted(line.unknown),
        "bound": line.bound,
        "lower_bound": bool(line.unknown if step.time is None else line.missing),
        "seconds": line.seconds,
        "share": line.seconds / step.serial,
        "marks": line.marks,
        "waiting_s": line.waiting,
        "inside_measured_range": not line.outside,
    }
