"""Statements of a TIR function and the spans that TileLang notes on them.

While a function is lowered, the column of a span holds the number of the statement it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

BASE = 1000
"""Columns from here on are numbers of ours; TileLang itself uses 1."""
LEAVES = ("Evaluate", "BufferStore", "Bind", "AllocBuffer")
HEADS = ("For", "IfThenElse", "While")
_SYNC = re.compile(r"flag|barrier|sync|get_buf|rls_buf|lock", re.I)


def kind_of(node: Any) -> str:
    return type(node).__name__


def is_statement(node: Any) -> bool:
    from tilelang import tvm

    return isinstance(node, tvm.tirx.Stmt)


def statements(function: Any) -> Iterator[tuple[int, Any]]:
    """Statements of a function with their numbers, in one fixed order."""
    from tilelang import tvm

    found: list[Any] = []
    tvm.tirx.stmt_functor.post_order_visit(
        function.body, lambda node: found.append(node) if is_statement(node) else None
    )
    return iter(enumerate(found))


def span_of(statement: Any) -> Any:
    from tilelang.ir import get_stmt_span

    return get_stmt_span(statement)


def set_span(statement: Any, file: str, line: int, column: int) -> None:
    from tilelang.ir import set_stmt_span
    from tvm.ir.base import SourceName, Span

    set_stmt_span(statement, Span(SourceName(file), line, line, column, 1 << 20))


def number_of(statement: Any) -> int:
    """The number of the statement that ``statement`` came from, 0 if unknown."""
    span = span_of(statement)
    return span.column if span is not None and span.column >= BASE else 0


def numbered(function: Any) -> dict[int, tuple[str, int]]:
    found = {}
    for n, statement in statements(function):
        span = span_of(statement)
        if span is not None:
            found[BASE + n] = (str(span.source_name.name), int(span.line))
    return found


def operator_of(statement: Any) -> str:
    value = getattr(statement, "value", None)
    return str(getattr(getattr(value, "op", None), "name", ""))


def synchronises(statement: Any) -> bool:
    return kind_of(statement) == "Evaluate" and bool(_SYNC.search(operator_of(statement)))


def leaves(function: Any) -> list[Any]:
    """Statements that print something, in the order in which they are printed."""
    from tilelang import tvm

    found: list[Any] = []
    wanted = LEAVES + HEADS

    def visit(node: Any) -> bool:
        if kind_of(node) in wanted:
            found.append(node)
        return True

    tvm.tirx.stmt_functor.pre_order_visit(function.body, visit)
    return found


def copy_span(source: Any, to: Any) -> None:
    span = span_of(source)
    if span is not None:
        set_span(to, span.source_name.name, span.line, span.column)
