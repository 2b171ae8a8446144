"""``lint``: what can be said of a kernel without running it.

Events and flags are matched by pipes and id. An id that is computed (``ko % 2``) may be any, so it
pairs with everything of its pipes: lint stays silent where it cannot know, and the judges of a run
decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascendkit.emulator import source
from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.findings import options
from ascendkit.emulator.findings.codes import lookup
from ascendkit.emulator.findings.finding import Finding, Point, Reader
from ascendkit.emulator.linemap import LineMap

EVENTS, FLAGS = 8, 16
NOT_RUN = "all runs"
_EVENT = re.compile(
    r"\basc_sync_(notify|wait)\(\s*PIPE_(\w+),\s*PIPE_(\w+),\s*(?:static_cast<event_t>)?\((.*)\)\s*\);"
)
_FLAG = re.compile(r"\basc_sync_(intra|block)_(arrive|wait)\(\s*PIPE_(\w+),\s*(.+?)\s*\);")
_BRANCH = re.compile(r"^\s*if \(?ASC_IS_(AIC|AIV)\)? \{")
_TEMPLATE = re.compile(r"\b((?:asc|ascend)_\w+|(?:tl|simd_inst)::\w+)<([^;<>()]*)>\(")
_DECLARED = re.compile(
    r"\b(?:u?int(?:8|16|32|64)_t|int|float|half|bfloat16_t|bool|size_t|auto)\s+(\w+)\s*(?=[=;,)])"
)
_LOOP = re.compile(r"for \(int32_t (\w+) = 0; \1 < (\d+); ")
_PRODUCT = re.compile(r"(?<!int64_t\))(?<![\w.])(\w+) \* (\d+)")


def lint(kernel: Any, pass_configs: Mapping[str, Any] | None = None) -> tuple[Finding, ...]:
    """What is wrong or odd in a source text, a ``.asc`` file, or a TileLang ``prim_func``.

    A function is lowered first; one that does not fit the chip, and, of one without errors,
    pass options, buffer versions and pipeline stages that change nothing, are found too.

    Raises:
        TypeError: something else.
    """
    if isinstance(kernel, (str, Path)):
        from ascendkit.emulator.running import _text

        return _sorted(of_source(_text(kernel)))
    from ascendkit.emulator.findings.fits import fits
    from ascendkit.emulator.linemap import load
    from ascendkit.emulator.lowered import lower

    found = list(_capacity(fits(kernel, pass_configs)))
    if any("refuses" in f.detail for f in found):
        return _sorted(found)
    entry = lower(kernel, pass_configs)
    found += of_source(entry["source"], load(entry, kernel))
    if not any(f.severity == "error" for f in found):
        unused = options.without_effect(kernel, dict(pass_configs or {}), entry["source"])
        found += map(without_effect, unused)
    return _sorted(found)


def of_source(text: str, origins: LineMap | None = None) -> list[Finding]:
    """Findings of a generated text."""
    reader = Reader(text, origins)
    try:
        source.kernels(text)
    except EmulatorError as error:
        return [reader.of_error(error)]
    found: list[Finding] = []
    calls = list(_calls(text))
    for branch in sorted({c.branch for c in calls}):
        found += _events(reader, [c for c in calls if c.scope == "event" and c.branch == branch])
    found += _flags(reader, [c for c in calls if c.scope != "event"])
    found += _templates(reader, text)
    found += _offsets(reader, text)
    return found


# ---- synchronisation -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Call:
    """One call: ``pipes`` from and to, or the one of a flag; ``id`` is None if computed."""

    line: int
    branch: str
    scope: str
    sets: bool
    pipes: tuple[str, ...]
    id: int | None
    shown: str


def _calls(text: str) -> Iterator[_Call]:
    branch, function = "", 0
    for number, row in enumerate(text.splitlines(), 1):
        if row.startswith("}"):
            branch = ""
        if 'extern "C"' in row:
            function = number
        new = _BRANCH.match(row)
        branch = new.group(1) if new else branch
        where = f"{function} {branch}".strip()
        event = _EVENT.search(row)
        if event:
            verb, first, second, name = event.groups()
            yield _Call(
                number, where, "event", verb == "notify", (first, second), _constant(name), name
            )
        flag = _FLAG.search(row)
        if flag:
            scope, verb, pipe, name = flag.groups()
            yield _Call(number, where, scope, verb == "arrive", (pipe,), _constant(name), name)


def _constant(text: str) -> int | None:
    text = text.strip().strip("()")
    try:
        return int(text, 0)
    except ValueError:
        return None


def _events(reader: Reader, calls: Sequence[_Call]) -> Iterator[Finding]:
    for call in calls:
        what = "set" if call.sets else "wait"
        pair = f"{call.pipes[0]} -> {call.pipes[1]}"
        if call.id is not None and call.id >= EVENTS:
            yield _finding(
                reader, "AK-SYNC-001", call.line, f"event {call.id}: legal ids are 0..{EVENTS - 1}"
            )
            continue
        if call.pipes[0] == call.pipes[1]:
            yield _finding(
                reader, "AK-LINT-002", call.line, f"{what} of event {call.shown}, {pair}"
            )
        partners = [c for c in calls if c.pipes == call.pipes and c.sets != call.sets]
        if not any(c.id is None or call.id is None or c.id == call.id for c in partners):
            missing = "no wait takes it" if call.sets else "nothing sets it"
            yield _finding(
                reader, "AK-LINT-001", call.line, f"event {call.shown}, {pair}: {missing}"
            )


def _flags(reader: Reader, calls: Sequence[_Call]) -> Iterator[Finding]:
    """Flags between the cores of a block: a list of pairs, and what has no partner."""
    pairs: list[tuple[str, int, int]] = []
    for call in calls:
        kind = call.branch.rpartition(" ")[2]
        others = [
            c
            for c in calls
            if c.scope == call.scope
            and c.sets != call.sets
            and c.branch != call.branch
            and c.branch.partition(" ")[0] == call.branch.partition(" ")[0]
        ]
        matching = [c for c in others if _meets(call, c)]
        name = f"{call.scope} flag {call.shown} on {kind or 'the core'}, pipe {call.pipes[0]}"
        if not matching and kind:
            missing = "no wait takes it" if call.sets else "nothing sets it"
            yield _finding(reader, "AK-LINT-007", call.line, f"{name}: {missing}")
        if call.sets:
            pairs += [(name, call.line, c.line) for c in matching]
    for name, first, second in pairs:
        yield _finding(reader, "AK-LINT-006", second, name, other=first)


def _meets(one: _Call, other: _Call) -> bool:
    """The cube core counts the flags of its second vector core from 16."""
    if one.id is None or other.id is None:
        return True
    return one.id % FLAGS == other.id % FLAGS


# ---- text ----------------------------------------------------------------------------------------


def _templates(reader: Reader, text: str) -> Iterator[Finding]:
    """Values known only at run time where the compiler wants a constant."""
    variables: set[str] = set()
    for number, row in enumerate(text.splitlines(), 1):
        if not row.startswith((" ", "}")):
            variables = set()
        variables |= set(_DECLARED.findall(row))
        for name, arguments in _TEMPLATE.findall(row):
            for argument in arguments.split(","):
                used = sorted(set(re.findall(r"[A-Za-z_]\w*", argument)) & variables)
                if used:
                    yield _finding(
                        reader,
                        "AK-LINT-003",
                        number,
                        f"{name}<{arguments}>: {', '.join(used)} is known at run time only",
                    )


def _offsets(reader: Reader, text: str) -> Iterator[Finding]:
    """32-bit products that pass 2^31 in the last turn of a loop."""
    turns: dict[str, int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        if not row.startswith((" ", "}")):
            turns = {}
        turns.update({name: int(count) for name, count in _LOOP.findall(row)})
        for name, factor in _PRODUCT.findall(row):
            last = (turns.get(name, 0) - 1) * int(factor)
            if last >= 1 << 31:
                yield _finding(
                    reader,
                    "AK-LINT-004",
                    number,
                    f"{name} * {factor} reaches {last} with {turns[name]} turns, past 2^31 - 1",
                )


# ---- of functions --------------------------------------------------------------------------------


def _capacity(found: Sequence[Any]) -> Iterator[Finding]:
    for fit in found:
        if fit.ok:
            continue
        for memory in fit.memories:
            limit = fit.capacity["950"][memory.space]
            if memory.need <= limit:
                continue
            refused = f"; TileLang refuses it: {fit.reason}" if fit.reason else ""
            detail = (
                f"{memory.space}: {memory.need} bytes ({memory.need * 8} bits) of {limit}; "
                f"{memory.over.get('950', '')}{refused}"
            )
            python = (memory.peak,) if memory.peak else ()
            yield _entry("AK-CAPACITY-001", Point(python=python, core=fit.kernel), detail)
        if fit.reason and all(m.need <= fit.capacity["950"][m.space] for m in fit.memories):
            detail = f"TileLang refuses it: {fit.reason}"
            yield _entry("AK-LINT-008", Point(core=fit.kernel), detail)


def without_effect(what: str) -> Finding:
    """The finding of an option that changes nothing."""
    return _entry("AK-LINT-005", Point(), what)


def _finding(reader: Reader, code: str, line: int, detail: str, other: int = 0) -> Finding:
    found = _entry(code, reader.point(line), detail, reader.condition(line))
    if not other:
        return found
    return Finding(**{**found.__dict__, "other": reader.point(other)})


def _entry(code: str, here: Point, detail: str, condition: tuple[str, ...] = ()) -> Finding:
    known = lookup(code)
    return Finding(
        code,
        known.severity,
        known.title,
        detail,
        here,
        cure=known.cure,
        scope=NOT_RUN,
        condition=condition,
    )


def _sorted(found: Sequence[Finding]) -> tuple[Finding, ...]:
    from ascendkit.emulator.findings.codes import SEVERITIES

    return tuple(
        sorted(found, key=lambda f: (SEVERITIES.index(f.severity), f.code, f.here.line, f.detail))
    )
