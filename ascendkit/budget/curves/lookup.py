"""Which curve times a call: its own, a relative's, another chip's, or the peak; always marked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ascendkit.budget.call import Call
from ascendkit.budget.curves.chain import ALIKE, chain
from ascendkit.budget.curves.curve import Curve, Sample
from ascendkit.budget.curves.facts import floor
from ascendkit.budget.curves.rows import Row, rows
from ascendkit.budget.curves.work import AXES, SPLIT, SPLIT_ROWS, Key, ideal, key_of, whole
from ascendkit.budget.roofline import falls_to, roofline
from ascendkit.hardware import Device, device

SPREAD = {"T": 0.35, "A": 0.6}
"""Standard error of log(time) added to what is transferred or assumed: an estimate, set once by
judgement and not fitted; it widens the p10 to p90 band and moves no time."""

OUTSIDE = 0.1
"""Added beyond the measured range."""


@dataclass(frozen=True)
class Timing:
    """Time of one call on a device.

    Args:
        seconds: expected time, launch floor included.
        idle: of it, launch floor and latency, which leave the device to others.
        sigma: standard error of log(seconds).
        mark: ``M``, ``P``, ``T`` or ``A``.
        rows: ids of the nearest rows.
        source: text of the nearest row's source.
        how: one line on what was done.
        inside: False beyond the measured range.
        overlapped: rows were measured with other work running beside.
        missing: resources the call needs whose rate the device's table does not know; ``seconds``
            is then a lower bound.
    """

    seconds: float
    idle: float
    sigma: float
    mark: str
    rows: tuple[str, ...] = ()
    source: str = ""
    how: str = "launch only"
    inside: bool = True
    overlapped: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stack:
    """How kernels are chosen and launched: phase, launch mode, and rows left out.

    Args:
        phase: ``train``, ``prefill`` or ``decode``.
        launch: ``graph``, ``queued`` or ``eager``.
        without: prefixes of sources and row ids that may not be used (leave-one-group-out).
    """

    phase: str
    launch: str = "graph"
    without: tuple[str, ...] = ()


def timing(call: Call, on: Device, stack: Stack) -> Timing:
    """Time of one call of ``call`` on a device."""
    got = _timing(call.op, call.key[1:], on, stack)
    if call.op in SPLIT and key_of(call, on).variant == SPLIT_ROWS:
        params = {**dict(call.key[1:]), SPLIT[call.op]: whole(on)}
        rows_whole = _timing(call.op, Call("", call.op, params).key[1:], on, stack)
        return min(got, rows_whole, key=lambda t: t.seconds)
    return got


@dataclass(frozen=True)
class Fit:
    """What was fitted to the rows a call is timed by: see :mod:`ascendkit.budget.curves.curve`."""

    latency: float
    utilisations: dict[int, float]
    corner: float
    rows: int
    spread: float


def fitted(call: Call, on: Device, stack: Stack) -> Fit | None:
    """The fit behind :func:`timing`; None where no row was found."""
    found = _best(key_of(call, on), on, stack) if max(ideal(call, on)) else None
    if found is None:
        return None
    curve = found[0]
    rates = {i: u for i in range(len(AXES)) if (u := curve.utilisation(i)) is not None}
    return Fit(curve.latency, rates, curve.corner, len(curve.samples), curve.spread)


@lru_cache(maxsize=65536)
def _timing(op: str, params: tuple[tuple[str, object], ...], on: Device, stack: Stack) -> Timing:
    call = Call("", op, dict(params))
    under, under_mark, origin = floor(on.key, stack.launch)
    under *= call.cost.launches
    launch = f"; launch: {origin}" if under_mark == "A" else ""
    work = ideal(call, on)
    missing = roofline(call.cost, on).missing
    if not max(work):
        mark = "A" if missing else under_mark
        return Timing(under, under, 0.1, mark, missing=missing)
    found = _best(key_of(call, on), on, stack)
    if found is None:
        return Timing(
            max(work) + under, under, SPREAD["A"], "A", how=f"peak rates, no measured row{launch}",
            inside=False, missing=missing,
        )  # fmt: skip
    curve, rows_of, mark, how = found
    if mark != "T" and missing == ("vector",):
        # Measured on this device as a whole: what its vector units take is in the rows.
        missing = ()
    fallen = {d: w for u, d in call.cost.flops() if u == "cube" and (w := falls_to(on, d))}
    if missing:
        mark, how = "A", f"{how}; no rate of {', '.join(missing)}, so a lower bound"
    elif fallen and mark != "A":
        text = ", ".join(f"{d} run as {w}" for d, w in fallen.items())
        mark, how = "T", f"{how}; {text}"
    inside = mark == "T" or curve.inside(work)
    near = [rows_of[s.id] for s in curve.nearest(work)]
    return Timing(
        curve.seconds(work) + under,
        curve.latency + under,
        math.hypot(curve.spread, SPREAD.get(mark, 0.0), 0.0 if inside else OUTSIDE),
        mark,
        tuple(dict.fromkeys(r.id for r in near)),
        near[0].source,
        how,
        inside,
        any(r.overlapped for r in near),
        missing,
    )


_Found = tuple[Curve, dict[str, Row], str, str]


@lru_cache(maxsize=4096)
def _best(key: Key, on: Device, stack: Stack) -> _Found | None:
    """The first curve of the chain that has rows, its mark, and the step taken."""
    for step in chain(on.key):
        where, alike, mark, how = step
        got = _curve(key, where, alike, stack)
        if got is not None:
            curve, rows_of = got
            # The curve is as good as the weakest of its rows.
            own = max((r.mark for r in rows_of.values()), key="MPE".index)
            return curve, rows_of, mark or own, how
    return None


@lru_cache(maxsize=4096)
def _curve(key: Key, where: str, alike: str, stack: Stack) -> tuple[Curve, dict[str, Row]] | None:
    fits = ALIKE[alike]
    chosen = [
        (row, sample)
        for other, row, sample in _samples(where, stack.without)
        if fits(key, other)
        and (alike != "same kernel" or stack.phase in (row.phase or stack.phase))
    ]
    if not chosen:
        return None
    return Curve([s for _, s in chosen]), {r.id: r for r, _ in chosen}


@lru_cache(maxsize=256)
def _samples(where: str, without: tuple[str, ...]) -> tuple[tuple[Key, Row, Sample], ...]:
    """Rows of a device with their ideal times.

    A row of several calls belongs to the largest; it stands for that many of its kind, with the
    time and the work of the whole row shared among them.
    """
    on, found = device(where), []
    for row in rows(where):
        if any(row.source.startswith(w) or row.id.startswith(w) for w in without):
            continue
        parts = [tuple(c.count * v for v in ideal(c, on)) for c in row.calls]
        work = tuple(map(sum, zip(*parts, strict=True)))
        if not 0 < max(work) <= 1.02 * row.seconds:
            # Faster than the peak of the device: not a time of this work.
            continue
        main = max(row.calls, key=lambda c: c.count * max(ideal(c, on)))
        kind = key_of(main, on)
        n = sum(c.count for c in row.calls if key_of(c, on) == kind)
        sample = Sample(tuple(v / n for v in work), row.seconds / n, row.id)
        found.append((kind, row, sample))
    return tuple(found)


def forget() -> None:
    """Drop everything derived from rows, after rows were added."""
    for cached in (_timing, _best, _curve, _samples):
        cached.cache_clear()
