"""Places of a generated source where a mutant can add something: indices of vector, SIMT and scalar
code, ends of loops, thread masks and thread counts, and stores and calls that it can leave out.

``prepared(text)`` writes ``ak_shift(number)`` into every place, which is 0 without a mutant; one
compilation then serves all of them. Lines keep their numbers. Copies and products are not touched:
their fields are changed by the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ascendkit.emulator.mutants import Mutant

_HEAD = re.compile(r'^(__simd_vf__|__simt_vf__|extern "C" __global__)')
_KIND = {"__simd_vf__": "simd", "__simt_vf__": "simt"}
_POINTER = re.compile(r"__(?:ubuf|gm)__ (\w+) ?\* ?(\w+)\s*[,)]")
_CAST = r"\(\(__(?:ubuf|gm)__ (?P<{0}>\w+) ?\*\)\w+\)"
_LOOP = re.compile(r"for \((?:int32_t|int64_t) (\w+) = [^;]*; \1 < ")
_MASK = re.compile(r"\(\(int32_t\)threadIdx\.[xyz]\) <=? ")
_THREADS = re.compile(r"cce::dim3\(")
_STORE = re.compile(
    r"^ *(?=(?:simd_inst::vsts\w*\(|asc_storealign\w*\(|\(\(__ubuf__|\*\(__ubuf__))"
)
_CALL = re.compile(r"^ *(?=(?:\w+_simd_vf_\d+\(|asc_vf_call<))")
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "half": 2, "bfloat16": 2, "float": 4, "bool": 1}


@dataclass(frozen=True)
class Place:
    """Number ``number``, at ``line``: what is changed, and by which amounts."""

    number: int
    line: int
    what: str
    amounts: tuple[int, ...]

    def mutants(self) -> list[Mutant]:
        """One mutant an amount; its operation names the place."""
        op = f"{self.what} of line {self.line}"
        return [Mutant(self.number, op, "shift", amount=a) for a in self.amounts]


def prepared(text: str) -> tuple[str, list[Place]]:
    """The text with its places, and what they are."""
    writer = _Writer()
    rows = [writer.row(number, row) for number, row in enumerate(text.splitlines(), 1)]
    return "\n".join(rows) + "\n", writer.places


class _Writer:
    def __init__(self) -> None:
        self.places: list[Place] = []
        self._kind = ""
        self._pointers: dict[str, str] = {}

    def row(self, number: int, row: str) -> str:
        head = _HEAD.match(row)
        if head:
            self._kind = _KIND.get(head.group(1), "scalar")
            self._pointers = {name: kind for kind, name in _POINTER.findall(row)}
            return row
        if not self._kind or row.startswith("}"):
            self._kind = ""
            return row
        if "asc_copy_" in row or "asc_sync" in row:
            return row
        self._line = number
        row = self._insert(_LOOP, row, "loop", lambda m: (-1, 1))
        if self._kind == "simt":
            row = self._insert(_MASK, row, "mask", lambda m: (-1, 1))
        if self._kind == "scalar":
            row = self._insert(_THREADS, row, "threads", lambda m: (-1, 1))
            row = self._unless(_CALL, row, "call")
        row = self._indices(row)
        return self._unless(_STORE, row, "store") if self._kind != "scalar" else row

    def _place(self, what: str, amounts: tuple[int, ...]) -> str:
        number = len(self.places)
        self.places.append(Place(number, self._line, f"{self._kind} {what}", amounts))
        return f"ak_shift({number})"

    def _insert(
        self,
        pattern: re.Pattern[str],
        row: str,
        what: str,
        amounts: Callable[[re.Match[str]], tuple[int, ...]],
    ) -> str:
        return pattern.sub(lambda m: f"{m.group(0)}{self._place(what, amounts(m))} + ", row)

    def _unless(self, pattern: re.Pattern[str], row: str, what: str) -> str:
        """Leave a statement out; one of several lines stays."""
        found = pattern.match(row)
        if not found or not row.rstrip().endswith(";") or (what == "store" and _reads(row)):
            return row
        return f"{found.group(0)}if (!{self._place(what, (1,))}) {row[found.end() :]}"

    def _indices(self, row: str) -> str:
        names = "|".join(map(re.escape, self._pointers)) or r"(?!)"
        pattern = re.compile(
            rf"(?P<cast>{_CAST.format('type')})(?P<how>\[| \+ )|(?<![\w.])(?P<name>{names})\["
        )

        def add(m: re.Match[str]) -> str:
            pointer = m.group("cast") or m.group("name")
            kind = m.group("type") or self._pointers[pointer]
            shift = self._place("index", _steps(kind, self._kind))
            return f"({pointer} + {shift}){m.group('how') or '['}"

        return pattern.sub(add, row)


def _reads(row: str) -> bool:
    """Whether a statement that starts like a store is none: it has no assignment and is no call."""
    return row.lstrip().startswith(("((", "*(")) and " = " not in row


def _steps(kind: str, where: str) -> tuple[int, ...]:
    """One element both ways; in vector functions, whose addresses are multiples of 32 bytes, as
    many elements as that is."""
    size = next((n for part, n in _BYTES.items() if part in kind), 1)
    step = max(1, 32 // size) if where == "simd" else 1
    return (-step, step)
