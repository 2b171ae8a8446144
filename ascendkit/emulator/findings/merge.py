"""Findings that say the same become one: an unrolled loop without its wait is one mistake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ascendkit.emulator.findings.finding import Finding, Point


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each code, pair of places, buffer and pair of pipes, in their order.

    A place is its Python lines; where there are none, its generated line. ``count`` is the sum,
    ``ranges`` the union of the byte ranges, ``begin`` and ``end`` its ends; the rest the first's.
    """
    first: dict[Any, Finding] = {}
    for f in findings:
        key = (f.scope, identity(f))
        first[key] = _joined(first[key], f) if key in first else f
    return list(first.values())


def identity(f: Finding) -> tuple[Any, ...]:
    """What two findings have in common that say the same."""
    what = "" if f.space else f.detail
    where = (_place(f.here), _place(f.other) if f.other else ())
    return (f.code, f.kernel, f.space, f.buffer, what, *where)


def _place(point: Point) -> tuple[Any, ...]:
    lines = tuple((o.file, o.line, o.how) for o in point.python) or point.line
    return (lines, point.pipe, point.access)


def _joined(one: Finding, two: Finding) -> Finding:
    if not one.space:
        return replace(one, count=one.count + two.count)
    found: list[tuple[int, int]] = []
    for begin, end in sorted({*_ranges(one), *_ranges(two)}):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return replace(
        one,
        count=one.count + two.count,
        begin=found[0][0],
        end=found[-1][1],
        ranges=tuple(found) if len(found) > 1 else (),
    )


def _ranges(f: Finding) -> tuple[tuple[int, int], ...]:
    return f.ranges or ((f.begin, f.end),)
