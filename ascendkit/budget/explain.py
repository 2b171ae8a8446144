"""One operator line down to its formulas with the numbers put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import exp
from typing import Any

from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import fitted, timing
from ascendkit.budget.curves.work import AXES
from ascendkit.budget.parts import Z90
from ascendkit.budget.report import duration, human
from ascendkit.budget.roofline import roofline, runs_as
from ascendkit.budget.step import Step
from ascendkit.cost import Term
from ascendkit.errors import unknown

_UNIT = {"flop": "FLOP", "read": "B", "write": "B", "link": "B"}


def matching(step: Step, name: str) -> list[Call]:
    """Calls whose line, op or op's last part is ``name``; ValueError naming the nearest."""
    wanted = name.lower()
    found = [
        c
        for c in step.calls
        if wanted in (c.label.lower(), c.op.lower(), c.op.rpartition(".")[2].lower())
    ]
    if not found:
        legal = {c.label for c in step.calls} | {c.op for c in step.calls}
        raise unknown("op", name, legal)
    return found


def explain(step: Step, name: str) -> Iterator[str]:
    """Lines of text: every distinct call, its terms, and its time by resource."""
    merged: dict[tuple[Any, ...], tuple[Call, float]] = {}
    for call in matching(step, name):
        seen = merged.get((call.part, *call.key), (call, 0.0))
        merged[call.part, *call.key] = (call, seen[1] + call.count)
    for call, count in merged.values():
        role = f", role {call.role}" if call.role else ""
        yield f"{call.op} ({call.label}, {call.part}{role}): {count:.6g} calls a step on one rank"
        for term in call.cost.terms:
            yield f"  {_term(term, call.cost.params)}"
        time = roofline(call.cost, step.device)
        binds = "  <- binds" if not time.missing else "  <- longest of what is known"
        for resource, seconds in time.by_resource.items():
            shown = "unknown rate" if seconds is None else duration(seconds)
            mark = binds if resource == time.bound else ""
            yield f"  {resource}: {shown}{mark}"
        if step.stack is not None:
            yield from _measured(call, step)
        for dtype in {d for u, d in call.cost.flops() if u == "cube"}:
            if runs_as(step.device, dtype) != dtype:
                yield f"  {dtype} products run as {runs_as(step.device, dtype)} on this device"


def _measured(call: Call, step: Step) -> Iterator[str]:
    """Time of one call: what it was looked up as, the numbers, the rows and their source."""
    assert step.stack is not None
    got = timing(call, step.device, step.stack)
    band = f"{duration(got.seconds * exp(-Z90 * got.sigma))} to "
    band += "unknown" if got.missing else duration(got.seconds * exp(Z90 * got.sigma))
    least = ">= " if got.missing else ""
    yield f"  time {least}{duration(got.seconds)}, p10 to p90 {band}; mark {got.mark}: {got.how}"
    fit = fitted(call, step.device, step.stack)
    if fit is not None:
        rates = ", ".join(f"{AXES[i]} {u:.0%} of peak" for i, u in fit.utilisations.items())
        yield (
            f"    = launch {duration(got.idle - fit.latency)} + latency {duration(fit.latency)} +"
            f" work at {rates} (corner {fit.corner:g}, {fit.rows} rows, scatter {fit.spread:.0%})"
        )
    if got.rows:
        yield f"    nearest rows: {', '.join(got.rows)}; source: {got.source}"
    if got.rows and not got.inside:
        yield "    beyond the measured range: the utilisation of the largest row holds"


def _term(term: Term, params: Any) -> str:
    where = f"{term.where} {term.dtype}".strip()
    numbers = re.sub(
        r"[A-Za-z_]\w*",
        lambda m: _number(params[m.group()]) if m.group() in params else m.group(),
        term.formula,
    )
    planned = " (planned)" if term.planned else ""
    return (
        f"{term.kind} {where}{planned}, {term.what}: {term.formula} = {numbers}"
        f" = {human(term.value, 6)}{_UNIT[term.kind]}"
    )


def _number(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, (int, float)) else str(value)
