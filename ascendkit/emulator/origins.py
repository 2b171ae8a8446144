"""The lowered program printed a second time, with a marker before what each statement prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascendkit.emulator.linemap import CALL, FUNCTION
from ascendkit.emulator.spankeeper import Keeper
from ascendkit.emulator.spans import (
    BASE,
    HEADS,
    LEAVES,
    kind_of,
    number_of,
    set_span,
    span_of,
    statements,
    synchronises,
)

_MARK = "ascendkit_origin"
# What a marked statement is: prints itself, opens a loop or a branch, synchronises, calls a vector
# function.
_PLAIN, _LOOP, _BRANCH, _SYNCHRONISES, _CALLS = range(5)


def traced(
    prim_func: Any, lower: Callable[[Sequence[Any]], Any], target: Any
) -> tuple[Any, dict[str, str]]:
    """Lower with ``lower(instruments)``, which returns TileLang's artifact.

    Returns:
        The artifact, and what ``load`` needs as JSON; empty where TileLang does not allow it.
    """
    spans = dict(statements(prim_func))
    before = {n: s for n, s in spans.items() if span_of(s) is not None}
    old = {n: span_of(s) for n, s in before.items()}
    keeper = Keeper()
    try:
        for n, stmt in before.items():
            set_span(stmt, old[n].source_name.name, old[n].line, BASE + n)
        artifact = lower([keeper.instrument()])
        heads = {BASE + n: kind_of(s) for n, s in before.items() if kind_of(s) in HEADS}
        marked = marked_source(artifact, target)
    finally:
        for n, stmt in before.items():
            set_span(stmt, old[n].source_name.name, old[n].line, old[n].column)
    lines = read_marks(marked, artifact.kernel_source, heads)
    return artifact, {
        "lines": json.dumps(lines, separators=(",", ":")),
        "places": json.dumps(keeper.places, separators=(",", ":")),
    }


def marked_source(artifact: Any, target: Any) -> str:
    """The source with a marker line before what each statement prints."""
    from importlib import import_module

    from tilelang import tvm
    from tilelang.backend.module import create_backend_context

    tirx = tvm.tirx
    # The package attribute of this name is the function, which hides the module.
    engine: Any = import_module("tilelang.engine.lower")
    module = engine._prepare_device_codegen_mod(artifact.device_mod)

    def mark(statement: Any) -> Any:
        own, kind = number_of(statement), _PLAIN
        if kind_of(statement) == "SBlock":
            if statement.name_hint not in ("SIMD_VF", "SIMT_VF"):
                return None
            own, kind = _first_number(statement), _CALLS
        elif synchronises(statement):
            kind = _SYNCHRONISES
        elif kind_of(statement) in HEADS:
            kind = _BRANCH if kind_of(statement) == "IfThenElse" else _LOOP
        call = tirx.call_extern("void", _MARK, own, kind)
        return tirx.SeqStmt([tirx.Evaluate(call), statement])

    kinds = [f"tirx.{name}" for name in (*LEAVES, *HEADS, "SBlock")]
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
    while block is not None and not number_of(block):
        block = getattr(block, "body", None)
    return number_of(block) if block is not None and kind_of(block) == "AttrStmt" else 0


_MARK_LINE = re.compile(rf"^\s*{_MARK}\((\d+), (\d)\);$")


def read_marks(marked: str, source: str, heads: Mapping[int, str]) -> dict[int, tuple[int, bool]]:
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
        if row.strip() in ("}", "} else {") or FUNCTION.match(row):
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
        start = FUNCTION.match(row)
        if start:
            inside = start.group(1) or ""
        elif inside and number in found:
            first.setdefault(inside, found[number][0])
        call = CALL.match(row)
        if call and number not in found and call.group(1) in first:
            found[number] = (first[call.group(1)], False)
