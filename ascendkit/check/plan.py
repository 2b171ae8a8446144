"""What a run covers: which platforms, which ops, which cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ascendkit import platform as platforms
from ascendkit import registry
from ascendkit.bench.record import MEASURED_ON
from ascendkit.check.outcome import FAIL, Outcome, describe
from ascendkit.check.tracing import traceable
from ascendkit.errors import bad_value, unknown
from ascendkit.op import LEVELS, Case, Op


@dataclass(frozen=True)
class Job:
    """One case of one op on one platform."""

    op: Op
    platform: str
    case: Case


@dataclass
class Plan:
    """All jobs of a run, and why something is not among them."""

    platforms: list[str] = field(default_factory=list)
    cannot: dict[str, str] = field(default_factory=dict)
    """Platforms that cannot run here, with the reason."""
    nothing: dict[str, str] = field(default_factory=dict)
    """Ops without a case to run, with the reason."""
    broken: list[Outcome] = field(default_factory=list)
    """Ops whose case list does not load."""
    correctness: list[Job] = field(default_factory=list)
    bandwidth: list[Job] = field(default_factory=list)
    traces: list[Job] = field(default_factory=list)
    """One job for every op that registers itself with torch."""


def make(component: str, op: str, platform: str, level: str, loop: str) -> Plan:
    """Plan a run.

    Args:
        component: name or ``all``.
        op: dotted name, its unique last part, or ``all``.
        platform: name, or ``auto`` for every one that can run here.
        level: first level that is left out is the one after it.
        loop: ``correctness``, ``bandwidth`` or ``all``.

    Raises:
        ValueError: unknown name, an op of another component, or a named platform that cannot run.
    """
    plan = Plan()
    chosen = _ops(component, op)
    _choose_platforms(plan, platform)
    for one in chosen.values():
        _add(plan, one, level, loop)
    return plan


def _ops(component: str, name: str) -> Mapping[str, Op]:
    known = registry.components()
    if component != "all" and component not in known:
        raise unknown("component", component, known)
    table = registry.ops()
    if component != "all":
        table = {n: o for n, o in table.items() if o.component == component}
    if name == "all":
        return table
    found = registry.op(name)
    if found.name not in table:
        raise unknown(f"op of component {component}", name, table)
    return {found.name: found}


def _choose_platforms(plan: Plan, platform: str) -> None:
    for name in platforms.PLATFORMS if platform == "auto" else (platform,):
        state = platforms.available(name)
        if state:
            plan.platforms.append(name)
        else:
            plan.cannot[name] = state.reason
    if platform != "auto" and not plan.platforms:
        raise ValueError(f"platform {platform!r} cannot run here: {plan.cannot[platform]}")


def _add(plan: Plan, op: Op, level: str, loop: str) -> None:
    lacking = [f"{s}.py" for s in ("cases", "reference") if not op.has(s)]
    if lacking:
        plan.nothing[op.name] = f"no {', no '.join(lacking)}"
        return
    try:
        _sound(op.load("cases").cases())
        cases = list(op.cases(level))
    except (Exception, SystemExit) as e:
        plan.broken.append(Outcome(op.name, "all", "(case list)", FAIL, describe(e)))
        return
    if not cases:
        plan.nothing[op.name] = f"no case at level {level}"
    mine = [p for p in plan.platforms if p in op.platforms()]
    jobs = [Job(op, p, c) for p in mine for c in cases]
    if loop in ("all", "correctness"):
        plan.correctness += jobs
        plain = (j for j in jobs if j.platform == "reference" and not j.case.error)
        job = next((j for j in plain if j.case.ranks == 1), None)
        # The first trace in a process costs seconds, which the quick level is not for.
        if job is not None and level != "smoke" and traceable(op):
            plan.traces.append(job)
    if loop in ("all", "bandwidth"):
        plan.bandwidth += [
            j for j in jobs if j.case.bench and not j.case.error and j.platform in MEASURED_ON
        ]


def _sound(cases: Iterable[Case]) -> None:
    """ValueError for a case list that would run less than it seems to."""
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise bad_value("case name", case.name, "a name of its own")
        seen.add(case.name)
        if case.level not in LEVELS:
            raise unknown(f"level of case {case.name}", case.level, LEVELS)
        if case.ranks < 1:
            raise bad_value(f"ranks of case {case.name}", case.ranks, "at least 1", 1)
