"""Which Python line a line of the generated source comes from, and what lies where on the chip.

TileLang's eager builder notes file and line on each statement it makes (``Span``). Before lowering,
each noted statement gets its number as the column of its span, so that a statement of the lowered
program tells exactly which statement it came from. Three passes drop spans; ``_Keeper`` hands them
on where the origin is beyond doubt. The lowered program is then printed a second time with a marker
before each statement: the markers say which line came from which statement, and without them both
texts must be equal. Whatever cannot be traced stays unknown.

Entries hold statement numbers, not lines, so that one cached lowering serves equal functions in
different places of different files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ascendkit.emulator import liveness

_BASE = 1000
"""Columns from here on are numbers of ours; TileLang itself uses 1."""
_MARK = "ascendkit_origin"
# What a marked statement is: prints itself, opens a loop or a branch, synchronises, calls a vector
# function.
_PLAIN, _LOOP, _BRANCH, _SYNCHRONISES, _CALLS = range(5)
_LEAVES = ("Evaluate", "BufferStore", "Bind", "AllocBuffer")
_HEADS = ("For", "IfThenElse", "While")
_SYNC = re.compile(r"flag|barrier|sync|get_buf|rls_buf|lock", re.I)
_FORGETFUL = {
    "tl.RewriteDualCopy",
    "tl.InsertNd2Nz",
    "tl.AscendSimdVFLowerParallel",
    "tl.AscendLowerTileOp",
    "tl.UnrollLoop",
}
_CALL = re.compile(r"^\s*(?:asc_vf_call<)?(\w+_sim[dt]_vf_\w+)[(>]")
_CORES = re.compile(r"\s*if \(?ASC_IS_AI[CV]")
_VF = re.compile(r"^__sim[dt]_vf__ .*?\b(\w+)\(.*\{$|^extern \"C\" __global__ ")


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
        known = origin and (origin.how == "at" or _CALL.match(self._rows[line - 1]))
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
        starts = (n for n, row in enumerate(self._rows, 1) if _VF.match(row) or _CORES.match(row))
        return list(starts)


def load(entry: Mapping[str, str], prim_func: Any) -> LineMap:
    """The map of a cache entry, with the lines of ``prim_func``."""
    raw = json.loads(entry.get("lines", "{}"))
    places = json.loads(entry.get("places", "{}"))
    return LineMap(
        {int(k): (v[0], bool(v[1])) for k, v in raw.items()},
        _numbered(prim_func),
        {k: tuple(Place(*row) for row in v["buffers"]) for k, v in places.items()},
        {k: tuple(v["steps"]) for k, v in places.items()},
        entry["source"],
    )


def traced(
    prim_func: Any, lower: Callable[[Sequence[Any]], Any], target: Any
) -> tuple[Any, dict[str, str]]:
    """Lower with ``lower(instruments)``, which returns TileLang's artifact.

    Returns:
        The artifact, and what ``load`` needs as JSON; empty where TileLang does not allow it.
    """
    spans = dict(_statements(prim_func))
    before = {n: s for n, s in spans.items() if _span(s) is not None}
    old = {n: _span(s) for n, s in before.items()}
    keeper = _Keeper()
    try:
        for n, stmt in before.items():
            _set(stmt, old[n].source_name.name, old[n].line, _BASE + n)
        artifact = lower([keeper.instrument()])
        heads = {_BASE + n: _kind(s) for n, s in before.items() if _kind(s) in _HEADS}
        marked = _marked_source(artifact, target)
    finally:
        for n, stmt in before.items():
            _set(stmt, old[n].source_name.name, old[n].line, old[n].column)
    lines = _read_marks(marked, artifact.kernel_source, heads)
    return artifact, {
        "lines": json.dumps(lines, separators=(",", ":")),
        "places": json.dumps(keeper.places, separators=(",", ":")),
    }


# ---- statements and their spans -----------------------------------------------------------------


def _kind(node: Any) -> str:
    return type(node).__name__


def _is_statement(node: Any) -> bool:
    from tilelang import tvm

    return isinstance(node, tvm.tirx.Stmt)


def _statements(function: Any) -> Iterator[tuple[int, Any]]:
    """Statements of a function with their numbers, in one fixed order."""
    from tilelang import tvm

    found: list[Any] = []
    tvm.tirx.stmt_functor.post_order_visit(
        function.body, lambda node: found.append(node) if _is_statement(node) else None
    )
    return iter(enumerate(found))


def _span(statement: Any) -> Any:
    from tilelang.ir import get_stmt_span

    return get_stmt_span(statement)


def _set(statement: Any, file: str, line: int, column: int) -> None:
    from tilelang.ir import set_stmt_span
    from tvm.ir.base import SourceName, Span

    set_stmt_span(statement, Span(SourceName(file), line, line, column, 1 << 20))


def _number(statement: Any) -> int:
    """The number of the statement that ``statement`` came from, 0 if unknown."""
    span = _span(statement)
    return span.column if span is not None and span.column >= _BASE else 0


def _numbered(function: Any) -> dict[int, tuple[str, int]]:
    found = {}
    for n, statement in _statements(function):
        span = _span(statement)
        if span is not None:
            found[_BASE + n] = (str(span.source_name.name), int(span.line))
    return found


def _operator(statement: Any) -> str:
    value = getattr(statement, "value", None)
    return str(getattr(getattr(value, "op", None), "name", ""))


def _synchronises(statement: Any) -> bool:
    return _kind(statement) == "Evaluate" and bool(_SYNC.search(_operator(statement)))


def _leaves(function: Any) -> list[Any]:
    """Statements that print something, in the order in which they are printed."""
    from tilelang import tvm

    found: list[Any] = []
    wanted = _LEAVES + _HEADS

    def visit(node: Any) -> bool:
        if _kind(node) in wanted:
            found.append(node)
        return True

    tvm.tirx.stmt_functor.pre_order_visit(function.body, visit)
    return found


# ---- passes that drop spans ----------------------------------------------------------------------


class _Keeper:
    """Hands spans on across the passes that drop them, and sees where buffers are placed."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, Any]] = {}
        self._stack: list[Any] = []

    def instrument(self) -> Any:
        """The pass instrument."""
        from tilelang import tvm

        keeper = self

        @tvm.ir.instrument.pass_instrument
        class Instrument:
            def run_before_pass(self, module: Any, info: Any) -> None:
                keeper._stack.append(module if keeper._watches(info.name) else None)

            def run_after_pass(self, module: Any, info: Any) -> None:
                before = keeper._stack.pop()
                if before is not None:
                    keeper._passed(str(info.name), before, module)

        return Instrument()

    @staticmethod
    def _watches(name: str) -> bool:
        return name in _FORGETFUL or name == "tl.MergeUBAllocations"

    def _passed(self, name: str, before: Any, after: Any) -> None:
        for variable, function in after.functions.items():
            old = before.functions.get(variable)
            if old is None or not hasattr(function, "body") or not hasattr(old, "body"):
                continue
            if name == "tl.MergeUBAllocations":
                self.places[str(variable.name_hint)] = _placed(old, function)
            else:
                _hand_on(_leaves(old), _leaves(function))


def _hand_on(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Give spans of ``before`` to the statements of ``after`` that replaced them."""
    kept = {_number(s) for s in after}
    names: dict[tuple[str, str, str], set[int]] = {}
    for s in before:
        if _kind(s) == "Bind":
            names.setdefault(_signature(s), set()).add(_number(s))
    numbers = [_number(s) for s in before]
    at = 0
    while at < len(after):
        if _number(after[at]):
            at += 1
            continue
        end = at
        while end < len(after) and not _number(after[end]):
            end += 1
        run = [
            s
            for s in after[at:end]
            if not _synchronises(s) and _kind(s) not in ("AllocBuffer", "IfThenElse")
        ]
        left = _number(after[at - 1]) if at else 0
        right = _number(after[end]) if end < len(after) else 0
        _replace(_between(before, numbers, left, right, kept), run)
        at = end
    for s in after:
        # A variable that was bound by one statement only is still that statement's.
        if _kind(s) == "Bind" and not _number(s):
            owners = names.get(_signature(s), set())
            if len(owners) == 1 and 0 not in owners:
                _copy_span(next(p for p in before if _signature(p) == _signature(s)), s)


def _signature(statement: Any) -> tuple[str, str, str]:
    if _kind(statement) != "Bind":
        return ("", "", "")
    return (str(statement.var.name), str(statement.var.dtype), _operator(statement))


def _between(
    before: Sequence[Any], numbers: Sequence[int], left: int, right: int, kept: set[int]
) -> list[Any]:
    """Statements of ``before`` between two neighbours that are gone in the program after."""
    first = len(numbers) - 1 - numbers[::-1].index(left) + 1 if left in numbers and left else 0
    rest = numbers[first:]
    last = first + rest.index(right) if right and right in rest else len(numbers)
    if (left and left not in numbers) or (right and right not in rest):
        return []
    return [s for s, n in zip(before[first:last], numbers[first:last]) if n and n not in kept]


def _replace(gone: Sequence[Any], new: Sequence[Any]) -> None:
    if not gone or not new:
        return
    acting = [s for s in gone if _kind(s) in ("Evaluate", "BufferStore")]
    if len(acting) == 1:
        for s in new:
            _copy_span(acting[0], s)
        return
    stores = [i for i, s in enumerate(new) if _kind(s) in ("Evaluate", "BufferStore")]
    if acting and len(stores) == len(acting) and all(_kind(s) == "BufferStore" for s in acting):
        # Each store ends what computes it.
        begin = 0
        for origin, end in zip(acting, stores):
            for s in new[begin : end + 1]:
                _copy_span(origin, s)
            begin = end + 1


def _copy_span(source: Any, to: Any) -> None:
    span = _span(source)
    if span is not None:
        _set(to, span.source_name.name, span.line, span.column)


# ---- where buffers lie ---------------------------------------------------------------------------


def _placed(before: Any, after: Any) -> dict[str, Any]:
    """Buffers and their byte offsets: the same access before and after they were merged."""
    from tilelang import tvm

    analyzer = tvm.arith.Analyzer()
    program = liveness.analyse(before, _number)
    old, new = _accesses(before), _accesses(after)
    offsets: dict[int, int] = {}
    if len(old) == len(new):
        for (variable, index, bits), (_, moved, moved_bits) in zip(old, new):
            key = liveness.identity(variable)
            delta = analyzer.simplify(moved - index)
            if key not in program.buffers or bits != moved_bits or _kind(delta) != "IntImm":
                continue
            offset = int(delta) * bits // 8
            if offsets.setdefault(key, offset) != offset:
                offsets = {}  # one buffer in two places: nothing here is to be trusted
                break
    rows = [
        [b.name, b.space, offsets.get(key, -1), b.bytes, b.first, b.last]
        for key, b in program.buffers.items()
    ]
    return {"buffers": rows, "steps": program.steps}


def _accesses(function: Any) -> list[tuple[Any, Any, int]]:
    """Buffer variable, element offset and element bits of each access, in order."""
    from tilelang import tvm

    found: list[tuple[Any, Any, int]] = []

    def visit(node: Any) -> None:
        kind = _kind(node)
        if kind == "Call" and str(getattr(node.op, "name", "")) == "tirx.tvm_access_ptr":
            dtype = tvm.DataType(node.args[0].dtype)
            found.append((node.args[1], node.args[2], dtype.bits * dtype.lanes))
        elif kind in ("BufferLoad", "BufferStore") and len(node.indices) == 1:
            dtype = tvm.DataType(node.buffer.dtype)
            found.append((node.buffer.data, node.indices[0], dtype.bits * dtype.lanes))

    tvm.tirx.stmt_functor.post_order_visit(function.body, visit)
    return found


# ---- the second print ----------------------------------------------------------------------------


def _marked_source(artifact: Any, target: Any) -> str:
    """The source with a marker line before what each statement prints."""
    from importlib import import_module

    from tilelang import tvm
    from tilelang.backend.module import create_backend_context

    tirx = tvm.tirx
    # The package attribute of this name is the function, which hides the module.
    engine: Any = import_module("tilelang.engine.lower")
    module = engine._prepare_device_codegen_mod(artifact.device_mod)

    def mark(statement: Any) -> Any:
        own, kind = _number(statement), _PLAIN
        if _kind(statement) == "SBlock":
            if statement.name_hint not in ("SIMD_VF", "SIMT_VF"):
                return None
            own, kind = _first_number(statement), _CALLS
        elif _synchronises(statement):
            kind = _SYNCHRONISES
        elif _kind(statement) in _HEADS:
            kind = _BRANCH if _kind(statement) == "IfThenElse" else _LOOP
        call = tirx.call_extern("void", _MARK, own, kind)
        return tirx.SeqStmt([tirx.Evaluate(call), statement])

    kinds = [f"tirx.{name}" for name in (*_LEAVES, *_HEADS, "SBlock")]
    functions = {
        variable: function.with_body(
            tirx.stmt_functor.ir_transform(function.body, None, mark, kinds)
        )
        for variable, function in module.functions.items()
    }
    context = create_backend_context(target, None, "auto")
    return str(
        context.codegen_device(tvm.IRModule(functions), compile_device=False).inspect_source()
    )


def _first_number(block: Any) -> int:
    """Number of the outermost statement of a vector function that has one: its ``with``."""
    while block is not None and not _number(block):
        block = getattr(block, "body", None)
    return _number(block) if block is not None and _kind(block) == "AttrStmt" else 0


_MARK_LINE = re.compile(rf"^\s*{_MARK}\((\d+), (\d)\);$")


def _read_marks(marked: str, source: str, heads: Mapping[int, str]) -> dict[int, tuple[int, bool]]:
    """Line -> (statement number, whether it is that statement)."""
    found: dict[int, tuple[int, bool]] = {}
    rows: list[str] = []
    now, kind = 0, _PLAIN
    for row in marked.splitlines():
        mark = _MARK_LINE.match(row)
        if mark:
            now, kind = int(mark.group(1)), int(mark.group(2))
            continue
        rows.append(row)
        if row.strip() in ("}", "} else {") or _VF.match(row):
            now = 0
        if not now:
            continue
        # Statements that the compiler has put into a loop or branch carry the number of that.
        head = heads.get(now)
        own = head is None or kind == (_BRANCH if head == "IfThenElse" else _LOOP)
        if own or kind != _SYNCHRONISES:
            found[len(rows)] = (now, own)
        if kind in (_LOOP, _BRANCH, _CALLS):
            now = 0
    if rows != source.splitlines():
        return {}
    _calls(rows, found)
    return found


def _calls(rows: Sequence[str], found: dict[int, tuple[int, bool]]) -> None:
    """A call of a vector function whose block is unknown stands for the first statement in it."""
    first: dict[str, int] = {}
    inside = ""
    for number, row in enumerate(rows, 1):
        start = _VF.match(row)
        if start:
            inside = start.group(1) or ""
        elif inside and number in found:
            first.setdefault(inside, found[number][0])
        call = _CALL.match(row)
        if call and number not in found and call.group(1) in first:
            found[number] = (first[call.group(1)], False)
