"""The oracle of mutants of data: which rules of memory a trace breaks.

It shares no code with the judges of the runtime: it goes through the records in their order, notes
for every byte of every memory whether it was written, and lists

- accesses outside the tensors and outside the memories of the chip,
- how many bytes each line reads that nobody wrote,
- bytes of the outputs that are not written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ascendkit.emulator.records import Access, Record

SIZES = {"UB": 256, "L1": 512, "L0A": 64, "L0B": 64, "L0C": 256}
"""KiB."""


@dataclass(frozen=True)
class Span:
    """The bytes of one tensor argument."""

    base: int
    bytes: int


@dataclass(frozen=True)
class Facts:
    """What a trace does to memory.

    Attributes:
        outside: line and memory of accesses that leave their memory.
        undefined: bytes that nobody wrote, by the line and memory of their reads.
        written, read: for each tensor a mask of its bytes.
    """

    outside: frozenset[tuple[int, str]]
    undefined: Counter[tuple[int, str]]
    written: tuple[np.ndarray, ...]
    read: tuple[np.ndarray, ...]


def facts(trace: Sequence[Record], spans: Sequence[Span]) -> Facts:
    """Go through a trace; ``spans`` are the tensors."""
    outside: set[tuple[int, str]] = set()
    undefined: Counter[tuple[int, str]] = Counter()
    written = tuple(np.zeros(s.bytes, bool) for s in spans)
    read = tuple(np.zeros(s.bytes, bool) for s in spans)
    chip: dict[tuple[object, ...], np.ndarray] = {}
    for r in trace:
        for a in sorted(r.accesses, key=lambda a: a.write):  # an instruction reads, then writes
            if not a.rows or not a.row_bytes:
                continue
            if a.space == "GM":
                for low, high in _runs(a):
                    at = next((i for i, s in enumerate(spans) if _inside(s, low, high)), None)
                    if at is None:
                        outside.add((r.line, a.space))
                        continue
                    mask = written[at] if a.write else read[at]
                    mask[low - spans[at].base : high - spans[at].base] = True
            elif a.space in SIZES:
                key = (r.block, a.space, a.sub if a.space == "UB" else 0)
                size = SIZES[a.space] << 10
                defined = chip.setdefault(key, np.zeros(size, bool))
                for low, high in _runs(a):
                    if low < 0 or high > size:
                        outside.add((r.line, a.space))
                    if a.write:
                        defined[max(low, 0) : high] = True
                    else:
                        part = defined[max(low, 0) : high]
                        undefined[r.line, a.space] += part.size - int(part.sum())
    return Facts(frozenset(outside), +undefined, written, read)


def _inside(s: Span, low: int, high: int) -> bool:
    return s.base <= low and high <= s.base + s.bytes


def _runs(a: Access) -> Iterator[tuple[int, int]]:
    if a.rows > 1 and a.stride == a.row_bytes:
        yield a.base, a.base + a.rows * a.row_bytes
        return
    for i in range(a.rows):
        low = a.base + i * a.stride
        yield low, low + a.row_bytes


def broken(base: Facts, mutant: Facts) -> tuple[str, ...]:
    """The rules that a mutant breaks and the correct kernel does not."""
    found = []
    places = sorted(mutant.outside - base.outside)
    if places:
        found.append(f"line {places[0][0]} leaves {places[0][1]}")
    for i, (want, got) in enumerate(zip(base.written, mutant.written)):
        missing = int((want & ~got).sum())
        if missing and want.all() and not base.read[i].any():
            found.append(f"{missing} bytes of output {i} are not written")
    return tuple(found)


def undefined(base: Facts, mutant: Facts) -> str:
    """Where a mutant reads more bytes that nobody wrote; empty: nowhere."""
    more = mutant.undefined - base.undefined
    if not more:
        return ""
    (line, space), count = more.most_common(1)[0]
    return f"line {line} reads {count} bytes of {space} that nobody wrote"


def accesses(trace: Sequence[Record]) -> list[object]:
    """What every core does to memory, in its order; the same bytes are the same however they are
    described."""
    found: dict[tuple[int, str, str], list[object]] = {}
    for r in trace:
        for a in r.accesses:
            if a.rows and a.row_bytes:
                key = (r.block, r.core, r.pipe)
                where = (a.space, a.write, a.sub, tuple(_runs(a)))
                found.setdefault(key, []).append((r.line, r.name, where))
    return sorted(found.items())
