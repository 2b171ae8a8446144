"""From a case of an op to a record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ascendkit.bench.ceiling import Ceiling, Ceilings, num_sets
from ascendkit.bench.environment import (
    commit,
    device_name,
    environment,
    known_device,
    l2_state,
)
from ascendkit.bench.record import Record
from ascendkit.bench.timing import Timing, do_bench
from ascendkit.cost import Cost
from ascendkit.op import Case, Op
from ascendkit.testing.memory import copied


def measure(
    op: Op,
    case: Case,
    args: tuple[Any, ...],
    function: Callable[..., Any],
    platform: str,
    ceilings: Ceilings,
) -> Record:
    """Time ``function(*args)`` on ``platform`` and set it against the ceilings of its device.

    Args:
        op: whose ``cost.py`` counts the work.
        args: tensors on any device; every timed call gets its own copy on the platform's.
        function: the op's public function.
        ceilings: of the device the platform runs on; it caches, so share one in a run.

    Raises:
        ValueError: the case's parameters do not determine the cost.
    """
    cost = op.cost(**cost_params(op, case))
    device = ceilings.device
    sets = num_sets(cost.minimum_bytes()) if device != "cpu" else 1
    calls = []
    for _ in range(sets):
        mine = copied(args, device)
        extra = _own_output(op, function, mine)
        calls.append(lambda mine=mine, extra=extra: function(*mine, **extra, platform=platform))
    timing = do_bench(calls, device)
    del calls
    ceiling = None
    if device != "cpu" and cost.minimum_bytes():
        ceiling = ceilings.best(traffic(cost, "read"), traffic(cost, "write"))
    return _record(op, case, platform, cost, timing, ceiling, ceilings, sets)


def cost_params(op: Op, case: Case) -> dict[str, Any]:
    """The case's parameters that the cost formula takes; the others only shape the data."""
    legal = inspect.signature(op.load("cost").cost).parameters
    return {k: v for k, v in case.params.items() if k in legal}


def traffic(cost: Cost, kind: str) -> float:
    """Minimum bytes of device memory of one direction, ``read`` or ``write``."""
    terms = (t for t in cost.terms if t.kind == kind and t.where == "hbm" and not t.planned)
    return sum(t.value for t in terms)


def _own_output(op: Op, function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """A fresh ``out=`` where the function takes one, so that no two calls share an output."""
    if "out" not in inspect.signature(function).parameters:
        return {}
    return {"out": op.load().allocate(*args)}


def _record(
    op: Op,
    case: Case,
    platform: str,
    cost: Cost,
    timing: Timing,
    ceiling: Ceiling | None,
    ceilings: Ceilings,
    sets: int,
) -> Record:
    device, least = ceilings.device, cost.minimum_bytes()
    flops = cost.flops()
    state = l2_state(device, sets * least)
    bound = None if device == "cpu" else _bound(cost, ceiling, ceilings, state)
    return Record(
        op=op.name,
        case=case.name,
        platform=platform,
        device=device_name(device),
        params=dict(case.params),
        time_us={"p20": timing.p20, "p50": timing.p50, "p80": timing.p80},
        flops=tuple({"unit": u, "dtype": d, "flop": n} for (u, d), n in flops.items()),
        bytes={"minimum": least, **cost.planned_bytes(), "link": sum(cost.link_bytes().values())},
        achieved={
            "gbs": least / timing.p50 / 1e3,
            "tflops": sum(flops.values()) / timing.p50 / 1e6,
        },
        ceiling=None
        if ceiling is None
        else {"kind": ceiling.kind, "bytes": ceiling.bytes, "gbs": ceiling.gbs},
        bound=bound,
        commit=commit(),
        environment=environment(device),
        method=f"{timing.method}, {sets} sets, {timing.repeats} repeats of {timing.calls} calls",
        l2_state=state,
    )


def _bound(cost: Cost, ceiling: Ceiling | None, ceilings: Ceilings, state: str) -> str:
    """The limit that alone would take the longest."""
    floor = ceilings.launch_us()
    limits: dict[str, float] = {"launch": cost.launches * floor}
    if ceiling is not None:
        # Data that stays in L2 between calls is held up by L2, not by the memory behind it.
        limits["l2" if state == "warm" else "hbm"] = max(ceiling.us - floor, 0.0)
    limits.update(_compute_us(cost.flops(), device_name(ceilings.device)))
    return max(limits, key=lambda name: limits[name])


def _compute_us(flops: Mapping[tuple[str, str], float], name: str) -> dict[str, float]:
    """Time of each unit at its published peak, where the hardware table knows it."""
    row = known_device(name)
    out: dict[str, float] = {}
    for (unit, dtype), count in flops.items():
        peak = row and row.flops_per_s(unit, dtype)
        if peak:
            out[unit] = out.get(unit, 0.0) + count / peak * 1e6
    return out
