"""Activations a rank keeps: for the backward pass in training, of one call in inference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ascendkit.budget.call import Call
from ascendkit.budget.forward import Segment
from ascendkit.budget.plan import Plan
from ascendkit.budget.stages import chunks, mirrored, of_rank
from ascendkit.model import Model

ELSEWHERE = ("ep_comm.dispatch", "ep_comm.combine", "ep_comm.all_gather")
"""What they move lies in expert-parallel buffers and in the cache, which have their own lines."""


def in_flight(p: Plan, rank: int = 0) -> float:
    """Micro-batches whose activations a rank holds at once, each of its whole share.

    Under DualPipe each of them is of one of the rank's two stages.
    """
    if p.schedule == "gpipe":
        held = float(p.micro_batches)
    elif p.schedule == "dualpipe":
        held = p.pp + 1.0
    elif p.schedule == "interleaved":
        # Warm-up: its chunks of the groups that are under way, and the one it works on.
        held = ((p.pp - rank - 1) * 2 + (p.vp - 1) * p.pp + 1) / p.vp
    else:
        held = float(p.pp - rank)
    return min(held, float(p.micro_batches))


def widest(calls: Iterable[Call]) -> dict[str, float]:
    """Inference: input and output of the call that has most of both, without weights and caches."""
    found = [c for c in calls if c.op not in ELSEWHERE]
    most = max(found, key=lambda c: c.cost.activation_bytes(), default=None)
    return {} if most is None else {f"{most.label}, in and out": most.cost.activation_bytes()}


def kept(m: Model, p: Plan, found: Sequence[Segment], rank: int) -> dict[str, float]:
    """Training: kept inputs of the micro-batches in flight, by operator line.

    Full recompute keeps the inputs of layers, and all of one layer while that is recomputed.
    """
    mine = [chunks(m, p)[i] for i in of_rank(p, rank)]
    held = in_flight(p, rank) / (2 if mirrored(p) else 1)
    out: dict[str, float] = {}
    if p.recompute == "full":
        layers = sum(len(c.layers) for c in mine)
        stream = p.tokens * m.hidden_size * max(m.hc_mult, 1) * 2
        out["layer inputs"] = stream * layers * held
        here = [s for s in found if s.at and any(c.runs(m, s) for c in mine)]
        most = max(here, key=lambda s: sum(_own(s, ("own", "cheap")).values()))
        _add(out, _own(most, ("own", "cheap")), 1.0)
        found = [s for s in found if not s.at]
    wanted = ("own",) if p.recompute == "selective" else ("own", "cheap")
    for s in found:
        _add(out, _own(s, wanted), held * sum(c.runs(m, s) for c in mine))
    return dict(sorted(out.items(), key=lambda kv: -kv[1]))


def _own(s: Segment, wanted: tuple[str, ...]) -> dict[str, float]:
    out: dict[str, float] = {}
    for c in s.calls:
        if c.keep in wanted and c.cost.kept_bytes():
            out[c.label] = out.get(c.label, 0.0) + c.count * c.cost.kept_bytes()
    return out


def _add(out: dict[str, float], more: dict[str, float], times: float) -> None:
    for label, size in more.items():
        if times:
            out[label] = out.get(label, 0.0) + size * times
