"""When each on-chip buffer of a lowered function is in use, in program order.

A buffer is in use from its first access to its last. A loop whose body sees a value of an earlier
turn, or of before the loop, keeps it for the whole loop; so do the versions of a buffer that are
filled for later turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SCOPES = {
    "shared": "UB",
    "shared.l1": "L1",
    "shared.l0a": "L0A",
    "shared.l0b": "L0B",
    "shared.l0c": "L0C",
}
_READS = 1


@dataclass
class Live:
    """One buffer; ``first`` and ``last`` are steps, -1 if it is never used."""

    name: str
    space: str
    bytes: int
    first: int = -1
    last: int = -1
    steps: list[int] = field(default_factory=list)


@dataclass
class Program:
    """Buffers by the identity of their variable, and the statement number of each step."""

    buffers: dict[int, Live]
    steps: list[int]


def space_of(scope: str) -> str:
    """On-chip memory of a storage scope, empty for registers and global memory."""
    return _SCOPES.get(scope.removesuffix(".dyn"), "")


def identity(node: Any) -> int:
    """The same for two references to one variable."""
    return int(node.__chandle__())


def buffer_bytes(buffer: Any) -> int:
    """Bytes of a buffer of constant shape, 0 if its shape is not known."""
    from tilelang import tvm

    count = 1
    for dim in buffer.shape:
        count = count * int(dim) if type(dim).__name__ == "IntImm" else 0
    dtype = tvm.DataType(buffer.dtype)
    return count * int(dtype.bits) * int(dtype.lanes) // 8


def analyse(function: Any, number: Callable[[Any], int]) -> Program:
    """``number`` tells which statement of the user's function a statement came from."""
    walk = _Walk(number)
    walk.statement(function.body)
    for live in walk.buffers.values():
        live.steps = sorted(set(live.steps))
        if not live.steps:
            continue
        live.first, live.last = live.steps[0], live.steps[-1]
        for begin, end in walk.loops:
            inside = [s for s in live.steps if begin <= s <= end]
            if not inside:
                continue
            outside = len(inside) < len(live.steps)
            if outside or inside[0] in walk.reads.get(id(live), ()):
                live.first, live.last = min(live.first, begin), max(live.last, end)
    return Program(walk.buffers, walk.numbers)


class _Walk:
    """Steps in program order; loops as pairs of their first and last step, inner ones first."""

    def __init__(self, number: Callable[[Any], int]) -> None:
        self.buffers: dict[int, Live] = {}
        self.loops: list[tuple[int, int]] = []
        self.numbers: list[int] = []
        self.reads: dict[int, set[int]] = {}
        self._number = number

    def statement(self, node: Any) -> None:
        kind = type(node).__name__
        if kind == "SeqStmt":
            for child in node.seq:
                self.statement(child)
        elif kind in ("For", "While"):
            begin = self._step(node, [node.min, node.extent] if kind == "For" else [node.condition])
            self.statement(node.body)
            self.loops.append((begin, len(self.numbers) - 1))
        elif kind == "IfThenElse":
            self._step(node, [node.condition])
            self.statement(node.then_case)
            if node.else_case is not None:
                self.statement(node.else_case)
        elif kind == "SBlockRealize":
            self.statement(node.block)
        elif kind == "SBlock":
            for buffer in node.alloc_buffers:
                self._allocate(buffer)
            self.statement(node.body)
        elif kind == "AttrStmt":
            self.statement(node.body)
        elif kind == "AllocBuffer":
            self._allocate(node.buffer)
        elif kind != "DeclBuffer":
            self._step(node, [node])

    def _allocate(self, buffer: Any) -> None:
        space = space_of(buffer.scope())
        if space:
            key = identity(buffer.data)
            self.buffers[key] = Live(str(buffer.name), space, buffer_bytes(buffer))

    def _step(self, node: Any, parts: list[Any]) -> int:
        from tilelang import tvm

        step = len(self.numbers)
        self.numbers.append(self._number(node))
        written: set[int] = set()

        def visit(part: Any) -> None:
            kind = type(part).__name__
            if kind == "Call" and str(getattr(part.op, "name", "")).endswith("tvm_access_ptr"):
                self._touch(part.args[1], step, int(part.args[4]) & _READS != 0, written)
            elif kind == "Call" and str(getattr(part.op, "name", "")).endswith("region"):
                self._touch(
                    part.args[0].buffer.data, step, int(part.args[1]) & _READS != 0, written
                )
            elif kind == "BufferStore":
                self._touch(part.buffer.data, step, False, written)
            elif kind == "BufferLoad":
                self._touch(part.buffer.data, step, identity(part) not in self._regions, written)

        self._regions: set[int] = set()
        for part in parts:
            tvm.tirx.stmt_functor.post_order_visit(part, self._note_region)
        for part in parts:
            tvm.tirx.stmt_functor.post_order_visit(part, visit)
        return step

    def _note_region(self, part: Any) -> None:
        # The load inside tl.region names a buffer; the region says whether it is read.
        if type(part).__name__ == "Call" and str(getattr(part.op, "name", "")).endswith("region"):
            self._regions.add(identity(part.args[0]))

    def _touch(self, variable: Any, step: int, read: bool, written: set[int]) -> None:
        live = self.buffers.get(identity(variable))
        if live is None:
            return
        live.steps.append(step)
        if read:
            self.reads.setdefault(id(live), set()).add(step)
