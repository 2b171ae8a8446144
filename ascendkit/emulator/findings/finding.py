"""One finding, and how it is made from what the runtime reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ascendkit.emulator.device import Region
from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.findings.codes import lookup
from ascendkit.emulator.findings.deadlock import missing
from ascendkit.emulator.linemap import LineMap, Origin
from ascendkit.emulator.verdicts import RawFinding

ALL_SCHEDULES = "all schedules"
ONE_RUN = "this run"


@dataclass(frozen=True)
class Point:
    """One of the two places of a finding.

    Attributes:
        line, text: of the generated source; line 0 if unknown.
        python: the Python lines: the statement itself, or those next to which the compiler put it.
        access: ``read``, ``write`` or empty.
        core, pipe: where it runs; empty if that does not matter.
    """

    line: int = 0
    text: str = ""
    python: tuple[Origin, ...] = ()
    access: str = ""
    core: str = ""
    pipe: str = ""


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, in how many schedules, and the smallest cure.

    Attributes:
        code, severity, title, cure: from the list of codes.
        detail: what is particular to this one.
        here: the later access, or the only place.
        other: the earlier access.
        buffer: name of the buffer or tensor; empty if unknown.
        space: memory; ``begin`` and ``end`` are bytes of the buffer's memory on chip, of the tensor
            in global memory.
        scope: ``all schedules``, ``this run``, ``this order and N replays``.
        condition: loops and branches around ``here``, outermost first.
        count: how often it was seen.
        ranges: the bytes between ``begin`` and ``end`` that are meant; empty: all.
    """

    code: str
    severity: str
    title: str
    detail: str = ""
    here: Point = field(default_factory=Point)
    other: Point | None = None
    buffer: str = ""
    space: str = ""
    begin: int = 0
    end: int = 0
    scope: str = ONE_RUN
    condition: tuple[str, ...] = ()
    cure: str = ""
    count: int = 1
    kernel: str = ""
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def page(self) -> str:
        """The page that explains the code."""
        return lookup(self.code).page

    def to_json(self) -> dict[str, Any]:
        """Plain containers."""
        found = asdict(self)
        for point in (found["here"], found["other"]):
            if point:
                for origin in point["python"]:
                    origin["text"] = Origin(**origin).text
        return {**found, "page": self.page}

    def __str__(self) -> str:
        from ascendkit.emulator.findings.render import plain

        return plain([self])


class Reader:
    """Makes findings of one source text."""

    def __init__(self, text: str, origins: LineMap | None = None) -> None:
        self._rows = text.splitlines()
        self._origins = origins or LineMap(text=text)

    def point(self, line: int, access: str = "", core: str = "", pipe: str = "") -> Point:
        """A line of the source with all that is known about it."""
        text = self._rows[line - 1].strip() if 0 < line <= len(self._rows) else ""
        python = self._origins.around(line) if text else ()
        return Point(line if text else 0, text, python, access, core, pipe)

    def of_raw(self, raw: RawFinding, regions: Sequence[Region] = ()) -> Finding:
        """From what a judge reports; ``regions`` are the tensors of the launch."""
        code = lookup(raw.code)
        access = _access(raw.write) if raw.bytes else ""
        here = self.point(raw.site, access, f"block {raw.block} {raw.core}", raw.pipe)
        other = None
        if raw.other_site:
            core = f"block {raw.other_block} {raw.other_core}"
            other = self.point(raw.other_site, _access(raw.other_write), core, raw.other_pipe)
            if not raw.bytes:
                other = Point(other.line, other.text, other.python, "", core, raw.other_pipe)
        buffer, begin = self._where(raw, regions)
        return Finding(
            raw.code,
            code.severity,
            code.title,
            raw.detail,
            here,
            other,
            buffer,
            raw.space if raw.bytes else "",
            begin,
            begin + raw.bytes,
            ONE_RUN if raw.this_order else ALL_SCHEDULES,
            self.condition(raw.site),
            code.cure,
            raw.count,
            raw.kernel,
        )

    def of_error(self, error: EmulatorError, kernel: str = "") -> Finding:
        """From what stopped a launch or refused a source."""
        code = lookup(error.code)
        here, other, cure = self.point(error.line, core=error.core), None, code.cure
        root = missing(error.message, self._rows) if "DEADLOCK" in error.code else None
        if root is not None:
            here = self.point(root.wait.line, core=root.wait.core, pipe=root.wait.pipe)
            other = self.point(root.line) if root.line else None
            cure = root.cure
        return Finding(
            error.code,
            code.severity,
            code.title,
            error.message,
            here,
            other,
            cure=cure,
            condition=self.condition(here.line),
            kernel=kernel,
        )

    def condition(self, line: int) -> tuple[str, ...]:
        """Loops and branches of the generated source around ``line``, outermost first."""
        found: list[tuple[int, str]] = []
        if not 0 < line <= len(self._rows):
            return ()
        indent = _indent(self._rows[line - 1])
        for row in reversed(self._rows[: line - 1]):
            depth = _indent(row)
            if not row.strip() or depth >= indent:
                continue
            indent = depth
            head = re.match(r"\s*(?:\} )?((?:for|if|while|else)\b.*?)\s*\{$", row)
            if head:
                found.append((depth, head.group(1)))
            if depth == 0:
                break
        return tuple(text for _, text in reversed(found))

    def _where(self, raw: RawFinding, regions: Sequence[Region]) -> tuple[str, int]:
        if raw.space != "GM":
            end = raw.base + max(raw.bytes, 1)
            return self._origins.buffer(raw.kernel, raw.space, raw.base, end), raw.base
        for region in regions:
            if region.base <= raw.base < region.base + max(region.bytes, 1):
                return region.name, raw.base - region.base
        return "", raw.base


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _access(write: bool) -> str:
    return "write" if write else "read"
