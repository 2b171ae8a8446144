"""Calls of a layer as tasks: what may run beside what, and which resource each takes.

Calls without a branch form the trunk. Neighbouring calls with branches fork from the trunk and join
it again: the query path beside the cache path, the shared expert beside the routed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ascendkit.budget.call import Call
from ascendkit.budget.curves.facts import contention
from ascendkit.budget.curves.lookup import Timing
from ascendkit.budget.curves.tiles import cores, family
from ascendkit.budget.curves.work import AXES, FAMILIES, ideal
from ascendkit.budget.overlap.fluid import Task, run
from ascendkit.hardware import Device

MODES = ("auto", "none", "all")
EXPERT = ("ep_comm.dispatch", "ep_comm.combine")
DRIVING_SMS = 20
"""SMs that DeepEP's kernels take on NVIDIA (profile of the V3 training run)."""
BESIDE = {"ascend": ("q", "kv", "index", "shared", "routed"), "nvidia": ("shared", "routed")}
"""Branches that published stacks run beside each other."""


@dataclass(frozen=True)
class Timed:
    """A call with its time."""

    call: Call
    timing: Timing


def demand(timed: Timed, on: Device) -> dict[str, float]:
    """Share of each resource a call takes while it runs alone."""
    seconds = timed.timing.seconds
    busy = max(1 - timed.timing.idle / seconds, 0.0)
    work = dict(zip(AXES, ideal(timed.call, on), strict=True))
    shares = {
        r: min(work[r] / seconds, 1.0) for r in ("hbm", "l2", "scaleup", "scaleout") if work[r]
    }
    if transfers(timed.call):
        # A link serves one transfer after another; what it moves below the rate is protocol.
        link = "scaleout" if work["scaleout"] else "scaleup"
        shares[link] = 1.0
        have = cores(on)
        if family(on) == "nvidia" and have and not timed.timing.overlapped:
            shares["cores"] = DRIVING_SMS / have
        return shares
    if family(on) == "nvidia":
        return {**shares, "cores": busy}
    if timed.call.op in FAMILIES["matrix"]:
        return {**shares, "aic": busy}
    if timed.call.op in FAMILIES["attention"]:
        return {**shares, "aic": busy, "aiv": busy / 2}
    return {**shares, "aiv": busy}


def transfers(call: Call) -> bool:
    """Whether a call moves data between ranks and does little else."""
    return call.op in FAMILIES["link"]


def tasks(chain: Sequence[Timed], on: Device, mode: str = "auto") -> list[Task]:
    """One pass through ``chain`` as tasks that wait for each other as the model demands."""
    beside = BESIDE[family(on)] if mode == "auto" else None if mode == "all" else ()
    out: list[Task] = []
    trunk: list[int] = []
    tails: dict[str, int] = {}
    fork: list[int] = []
    for timed in chain:
        branch = timed.call.branch
        if beside is not None and branch not in beside:
            branch = ""
        if not branch:
            before = list(tails.values()) or trunk
            tails = {}
        else:
            if not tails:
                fork = trunk
            before = [tails[branch]] if branch in tails else fork
        moving = transfers(timed.call)
        out.append(
            Task(
                timed.call.label,
                timed.timing.seconds * timed.call.count,
                demand(timed, on),
                tuple(before),
                _kept(timed, on) if moving else 1.0,
                moving,
            )
        )
        me = len(out) - 1
        if branch:
            tails[branch] = me
        else:
            trunk = [me]
    return out


def _kept(timed: Timed, on: Device) -> float:
    """Share of its rate a transfer keeps beside compute; rows taken beside compute have it."""
    if timed.timing.overlapped:
        return 1.0
    return contention(on.key, timed.call.op not in EXPERT)[0]


def together(*chains: Sequence[Task]) -> list[Task]:
    """Several independent chains in one list, the first with the highest priority."""
    out: list[Task] = []
    for chain in chains:
        base = len(out)
        out += [
            Task(t.name, t.seconds, t.demand, [i + base for i in t.after], t.kept, t.transfer)
            for t in chain
        ]
    return out


def one_after(*chains: Sequence[Task]) -> list[Task]:
    """Chains in series: each starts when everything before it has ended."""
    out: list[Task] = []
    for chain in chains:
        base = len(out)
        ends = _ends(out)
        out += [
            Task(
                t.name, t.seconds, t.demand,
                [i + base for i in t.after] if t.after else ends, t.kept, t.transfer,
            )
            for t in chain
        ]  # fmt: skip
    return out


def makespan(chain: Iterable[Task]) -> float:
    """Seconds from the first start to the last end."""
    return run(list(chain))


def _ends(chain: Sequence[Task]) -> list[int]:
    inner = {j for t in chain for j in t.after}
    return [i for i in range(len(chain)) if i not in inner]
