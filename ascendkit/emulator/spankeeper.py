"""Passes that drop spans, and the one that places buffers: what is known before is handed on.

A span is handed on only where the origin is beyond doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ascendkit.emulator import liveness
from ascendkit.emulator.spans import (
    copy_span,
    kind_of,
    leaves,
    number_of,
    operator_of,
    synchronises,
)

_FORGETFUL = {
    "tl.RewriteDualCopy",
    "tl.InsertNd2Nz",
    "tl.AscendSimdVFLowerParallel",
    "tl.AscendLowerTileOp",
    "tl.UnrollLoop",
}


class Keeper:
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
                self.places[str(variable.name_hint)] = placed(old, function)
            else:
                _hand_on(leaves(old), leaves(function))


def _hand_on(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Give spans of ``before`` to the statements of ``after`` that replaced them."""
    kept = {number_of(s) for s in after}
    names: dict[tuple[str, str, str], set[int]] = {}
    for s in before:
        if kind_of(s) == "Bind":
            names.setdefault(_signature(s), set()).add(number_of(s))
    numbers = [number_of(s) for s in before]
    at = 0
    while at < len(after):
        if number_of(after[at]):
            at += 1
            continue
        end = at
        while end < len(after) and not number_of(after[end]):
            end += 1
        run = [
            s
            for s in after[at:end]
            if not synchronises(s) and kind_of(s) not in ("AllocBuffer", "IfThenElse")
        ]
        left = number_of(after[at - 1]) if at else 0
        right = number_of(after[end]) if end < len(after) else 0
        _replace(_between(before, numbers, left, right, kept), run)
        at = end
    for s in after:
        # A variable that was bound by one statement only is still that statement's.
        if kind_of(s) == "Bind" and not number_of(s):
            owners = names.get(_signature(s), set())
            if len(owners) == 1 and 0 not in owners:
                copy_span(next(p for p in before if _signature(p) == _signature(s)), s)


def _signature(statement: Any) -> tuple[str, str, str]:
    if kind_of(statement) != "Bind":
        return ("", "", "")
    return (str(statement.var.name), str(statement.var.dtype), operator_of(statement))


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
    acting = [s for s in gone if kind_of(s) in ("Evaluate", "BufferStore")]
    if len(acting) == 1:
        for s in new:
            copy_span(acting[0], s)
        return
    stores = [i for i, s in enumerate(new) if kind_of(s) in ("Evaluate", "BufferStore")]
    if acting and len(stores) == len(acting) and all(kind_of(s) == "BufferStore" for s in acting):
        # Each store ends what computes it.
        begin = 0
        for origin, end in zip(acting, stores):
            for s in new[begin : end + 1]:
                copy_span(origin, s)
            begin = end + 1


def placed(before: Any, after: Any) -> dict[str, Any]:
    """Buffers and their byte offsets: the same access before and after they were merged."""
    from tilelang import tvm

    analyzer = tvm.arith.Analyzer()
    program = liveness.analyse(before, number_of)
    old, new = _accesses(before), _accesses(after)
    offsets: dict[int, int] = {}
    if len(old) == len(new):
        for (variable, index, bits), (_, moved, moved_bits) in zip(old, new):
            key = liveness.identity(variable)
            delta = analyzer.simplify(moved - index)
            if key not in program.buffers or bits != moved_bits or kind_of(delta) != "IntImm":
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
        kind = kind_of(node)
        if kind == "Call" and str(getattr(node.op, "name", "")) == "tirx.tvm_access_ptr":
            dtype = tvm.DataType(node.args[0].dtype)
            found.append((node.args[1], node.args[2], dtype.bits * dtype.lanes))
        elif kind in ("BufferLoad", "BufferStore") and len(node.indices) == 1:
            dtype = tvm.DataType(node.buffer.dtype)
            found.append((node.buffer.data, node.indices[0], dtype.bits * dtype.lanes))

    tvm.tirx.stmt_functor.post_order_visit(function.body, visit)
    return found
