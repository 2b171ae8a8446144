"""The host half of a lowered kernel, turned into a Python function.

TileLang's host function checks the arguments, computes shapes, and calls kernels in the kernels'
own parameter order. It is translated statement by statement, so that order, grids and checks come
from the artifact and not from guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TENSOR = 70
"""Type index of a tensor in TileLang's packed arguments; scalars: 1 integer, 2 bool, 3 float."""

_BINARY = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "FloorDiv": "//",
    "FloorMod": "%",
    "EQ": "==",
    "NE": "!=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "And": "and",
    "Or": "or",
}
_FIELDS = {1: "data", 2: "shape", 3: "strides", 4: "ndim", 5: "code", 6: "bits", 7: "lanes"}
_CONSTANT_FIELDS = {8: "0", 9: "0", 10: "12"}  # byte offset, device number, device kind


class HostTranslationError(NotImplementedError):
    """The host function uses a construct this translator does not know."""


@dataclass
class Argument:
    """One packed argument as the host function sees it."""

    value: Any
    type_index: int
    data: Any = None
    shape: list[int] = field(default_factory=list)
    strides: list[int] | None = None
    ndim: int = 0
    code: int = 0
    bits: int = 0
    lanes: int = 1
    dtype_name: str = ""


@dataclass(frozen=True)
class Call:
    """One kernel call: arguments in the kernel's order, then the launch extents."""

    name: str
    args: tuple[Any, ...]


def translate(host_mod: Any) -> str:
    """The Python text of the one entry function in ``host_mod``; see ``load``."""
    functions = list(host_mod.functions.values())
    if len(functions) != 1:
        raise HostTranslationError(f"{len(functions)} host functions, wanted 1")
    lines = _Translator(functions[0]).lines
    return "\n".join(["def host(args):", "  calls = []", *lines, "  return calls"])


def load(text: str) -> Callable[[list[Argument]], list[Call]]:
    """The function whose text ``translate`` gave."""
    scope: dict[str, Any] = {"Call": Call, "trunc_div": _trunc_div, "fail": _fail}
    exec(compile(text, "<tilelang host function>", "exec"), scope)
    function: Callable[[list[Argument]], list[Call]] = scope["host"]
    return function


def _is_zero(e: Any) -> bool:
    return type(e).__name__ == "IntImm" and int(e.value) == 0


def _trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b >= 0) else -q


def _fail(message: str, got: object = None, wanted: object = None) -> None:
    detail = f": got {got}, wanted {wanted}" if got is not None else ""
    raise ValueError(message + detail)


class _Translator:
    def __init__(self, function: Any) -> None:
        self.lines: list[str] = []
        self.names: dict[Any, str] = {}
        self.used = 0
        self.depth = 1
        packed = [p for p in function.params if p.name == "args"]
        for parameter in function.params:
            self.names[parameter] = "args" if parameter in packed else "0"
            if parameter.name == "num_args":
                self.names[parameter] = "len(args)"
        self.statement(function.body)

    # ---- statements ----------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def statement(self, s: Any) -> None:
        kind = type(s).__name__
        if kind == "SeqStmt":
            for one in s.seq:
                self.statement(one)
        elif kind == "Bind":
            self.emit(f"{self.name(s.var)} = {self.expr(s.value)}")
        elif kind == "AssertStmt":
            self.check(s)
        elif kind == "AttrStmt":
            self.statement(s.body)
        elif kind == "DeclBuffer":
            self.names[s.buffer] = self.expr(s.buffer.data)
            if getattr(s, "body", None) is not None:
                self.statement(s.body)
        elif kind == "IfThenElse":
            self.branch(s)
        elif kind == "For":
            self.emit(
                f"for {self.name(s.loop_var)} in range({self.expr(s.min)}, "
                f"{self.expr(s.min)} + {self.expr(s.extent)}):"
            )
            self.nested(s.body)
        elif kind == "Evaluate":
            self.evaluate(s.value)
        else:
            raise HostTranslationError(f"host statement {kind}")

    def nested(self, body: Any) -> None:
        self.depth += 1
        self.emit("pass")
        self.statement(body)
        self.depth -= 1

    def branch(self, s: Any) -> None:
        self.emit(f"if {self.expr(s.condition)}:")
        self.nested(s.then_case)
        if s.else_case is not None:
            self.emit("else:")
            self.nested(s.else_case)

    def check(self, s: Any) -> None:
        parts = getattr(s, "message_parts", None)
        text = "".join(str(getattr(p, "value", p)) for p in parts) if parts else str(s.message)
        condition = s.condition
        values = ""
        if type(condition).__name__ == "EQ":
            values = f", {self.expr(condition.a)}, {self.expr(condition.b)}"
        self.emit(f"if not ({self.expr(condition)}): fail({text!r}{values})")

    def evaluate(self, value: Any) -> None:
        if type(value).__name__ != "Call":
            return
        op = value.op.name
        if op in ("tirx.tvm_call_packed", "tirx.tvm_call_packed_lowered"):
            name = value.args[0].value
            if name.startswith("__tvm_"):
                return
            args = ", ".join(self.expr(a) for a in value.args[1:])
            self.emit(f"calls.append(Call({name!r}, ({args},)))")
        elif op not in ("tirx.ret", "tirx.builtin.ret"):
            raise HostTranslationError(f"host call {op}")

    # ---- expressions ---------------------------------------------------------------------------

    def name(self, var: Any) -> str:
        if var not in self.names:
            self.used += 1
            self.names[var] = re.sub(r"\W", "_", var.name) + f"__{self.used}"
        return self.names[var]

    def expr(self, e: Any) -> str:
        kind = type(e).__name__
        if kind in ("IntImm", "FloatImm"):
            return repr(bool(e.value) if str(e.dtype) == "bool" else e.value)
        if kind == "StringImm":
            return repr(e.value)
        if kind == "Var":
            return self.name(e)
        if kind in _BINARY:
            return f"({self.expr(e.a)} {_BINARY[kind]} {self.expr(e.b)})"
        if kind in ("Div", "Mod"):
            q = f"trunc_div({self.expr(e.a)}, {self.expr(e.b)})"
            return q if kind == "Div" else f"({self.expr(e.a)} - {q} * {self.expr(e.b)})"
        if kind in ("Max", "Min"):
            return f"{kind.lower()}({self.expr(e.a)}, {self.expr(e.b)})"
        if kind == "Not":
            return f"(not {self.expr(e.a)})"
        if kind == "Select":
            return (
                f"({self.expr(e.true_value)} if {self.expr(e.condition)} "
                f"else {self.expr(e.false_value)})"
            )
        if kind == "Cast":
            return self.cast(e)
        if kind == "BufferLoad":
            return f"{self.names[e.buffer]}[{self.expr(e.indices[0])}]"
        if kind == "Call":
            return self.call(e)
        raise HostTranslationError(f"host expression {kind}")

    def cast(self, e: Any) -> str:
        wanted = str(e.dtype)
        if wanted.startswith(("int", "uint")):
            return f"int({self.expr(e.value)})"
        return f"float({self.expr(e.value)})" if wanted.startswith("float") else self.expr(e.value)

    def call(self, e: Any) -> str:
        op = e.op.name.rpartition(".")[2]
        args = e.args
        if op == "tvm_struct_get":
            return self.field(args)
        if op == "isnullptr":
            return f"({self.expr(args[0])} is None)"
        if op == "if_then_else":
            return f"({self.expr(args[1])} if {self.expr(args[0])} else {self.expr(args[2])})"
        if op in ("shift_right", "shift_left", "bitwise_and", "bitwise_or", "bitwise_xor"):
            sign = {"right": ">>", "left": "<<", "and": "&", "or": "|", "xor": "^"}
            return f"({self.expr(args[0])} {sign[op.rpartition('_')[2]]} {self.expr(args[1])})"
        if op == "reinterpret" and str(e.dtype) == "handle" and _is_zero(args[0]):
            return "None"
        if op in ("handle_add_byte_offset", "likely", "reinterpret"):
            return self.expr(args[0])
        raise HostTranslationError(f"host call {e.op.name}")

    def field(self, args: Any) -> str:
        base, index, what = self.expr(args[0]), int(args[1]), int(args[2])
        if base == "args":
            return f"args[{index}]" + (".type_index" if what == 13 else ".value")
        if what in _CONSTANT_FIELDS:
            return _CONSTANT_FIELDS[what]
        if what not in _FIELDS:
            raise HostTranslationError(f"tensor field {what}")
        return f"{base}.{_FIELDS[what]}"
