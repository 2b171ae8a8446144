"""Which Python line a line of the generated source comes from, and what lies where on the chip.

TileLang's eager builder notes file and line on each statement it makes (``Span``). Before lowering,
each noted statement gets its number as the column of its span, so that a statement of the lowered
program tells exactly which statement it came from (``spans``). Some passes drop spans;
``spankeeper`` hands them on where the origin is beyond doubt. The lowered program is then printed a
second time with a marker before each statement (``origins``): the markers say which line came from
which statement, and without them both texts must be equal. Whatever cannot be traced stays unknown.

Entries hold statement numbers, not lines, so that one cached lowering serves equal functions in
different places of different files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ascendkit.emulator.spans import numbered

CALL = re.compile(r"^\s*(?:asc_vf_call<)?(\w+_sim[dt]_vf_\w+)[(>]")
_CORES = re.compile(r"\s*if \(?ASC_IS_AI[CV]")
FUNCTION = re.compile(r"^__sim[dt]_vf__ .*?\b(\w+)\(.*\{$|^extern \"C\" __global__ ")


@dataclass(frozen=True)
class Origin:
    """A place in the user's Python.

    Attributes:
        how: ``at`` the statement itself; ``in`` the loop or block that starts there; ``after`` and
            ``before`` the statement next to which the compiler has put something of its own.
    """

    file: str
    line: int
    how: str = "at"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str:
        """The source line, empty if the file is gone."""
        import linecache

        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True)
class Place:
    """Where a buffer of the kernel lies on the chip; ``bytes`` covers all its versions.

    ``offset`` is -1 if unknown; ``first`` and ``last`` are the steps between which it is in use, -1
    if it never is.
    """

    name: str
    space: str
    offset: int
    bytes: int
    first: int = -1
    last: int = -1


@dataclass(frozen=True)
class LineMap:
    """Origins of the lines of one generated source, and places of its buffers.

    Attributes:
        lines: line of the generated source -> (statement number, whether it is the statement).
        spans: statement number -> file and line, of the function at hand.
        places: buffers, by kernel name.
        steps: statement number of each step of the lowered program, by kernel name.
    """

    lines: Mapping[int, tuple[int, bool]] = field(default_factory=dict)
    spans: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    places: Mapping[str, Sequence[Place]] = field(default_factory=dict)
    steps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    text: str = ""

    def at(self, line: int) -> Origin | None:
        """The Python line of a line of the source, None if unknown."""
        entry = self.lines.get(line)
        span = self.spans.get(entry[0]) if entry else None
        if entry is None or span is None:
            return None
        return Origin(*span, "at" if entry[1] else "in")

    def around(self, line: int) -> tuple[Origin, ...]:
        """The Python lines of ``line``: its own, else those of the statements around it, else of
        the call of the vector function it belongs to. Empty if none is known."""
        own = self.at(line)
        if own is not None and own.how == "at":
            return (own,)
        first, last = self._function(line)
        before = next((o for n in range(line - 1, first, -1) if (o := self._exact(n))), None)
        after = next((o for n in range(line + 1, last) if (o := self._exact(n))), None)
        near = [
            Origin(o.file, o.line, how) for o, how in ((before, "after"), (after, "before")) if o
        ]
        return tuple(near) if near else (own,) if own else ()

    def told(self, line: int) -> tuple[str, ...]:
        """``around`` as text, the source lines included."""
        how = {"at": "", "in": "the block at "}
        return tuple(
            f"{how.get(o.how, o.how + ' ')}{o}: {o.text}".rstrip(": ") for o in self.around(line)
        )

    def buffer(self, kernel: str, space: str, begin: int, end: int) -> str:
        """Names of the buffers that hold bytes [begin, end) of ``space``; empty if unknown."""
        names = [
            p.name
            for p in self.places.get(kernel, ())
            if p.space == space and 0 <= p.offset < end and begin < p.offset + p.bytes
        ]
        return ", ".join(dict.fromkeys(names))

    def step(self, kernel: str, step: int) -> Origin | None:
        """The Python line of a step of the lowered program."""
        steps = self.steps.get(kernel, ())
        span = self.spans.get(steps[step]) if 0 <= step < len(steps) else None
        return Origin(*span) if span else None

    def _exact(self, line: int) -> Origin | None:
        origin = self.at(line)
        known = origin and (origin.how == "at" or CALL.match(self._rows[line - 1]))
        return origin if known else None

    def _function(self, line: int) -> tuple[int, int]:
        bounds = [n for n in self._starts if n <= line]
        after = [n for n in self._starts if n > line]
        return (bounds[-1] if bounds else 0), (after[0] if after else len(self._rows) + 1)

    @cached_property
    def _rows(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _starts(self) -> list[int]:
        starts = (
            n for n, row in enumerate(self._rows, 1) if FUNCTION.match(row) or _CORES.match(row)
        )
        return list(starts)


def load(entry: Mapping[str, str], prim_func: Any) -> LineMap:
    """The map of a cache entry, with the lines of ``prim_func``."""
    raw = json.loads(entry.get("lines", "{}"))
    places = json.loads(entry.get("places", "{}"))
    return LineMap(
        {int(k): (v[0], bool(v[1])) for k, v in raw.items()},
        numbered(prim_func),
        {k: tuple(Place(*row) for row in v["buffers"]) for k, v in places.items()},
        {k: tuple(v["steps"]) for k, v in places.items()},
        entry["source"],
    )
