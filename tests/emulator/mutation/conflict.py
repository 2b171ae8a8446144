"""Accesses that meet: in which memory, in which bytes, and whether order matters to them."""

from __future__ import annotations

from ascendkit.emulator.records import Access, Record
from tests.emulator.mutation.order import Node

Pair = tuple[tuple[str, str, int, bool], tuple[str, str, int, bool], str]
"""Two instructions (core, pipe, line, whether it writes) and the memory they meet in."""


def place_of(r: Record, a: Access) -> tuple[object, ...]:
    """The memory an access is in."""
    if a.space == "GM":
        return ("GM",)
    return (a.space, r.block, a.sub if a.space == "UB" else 0)


def atomic(r: Record, a: Access) -> bool:
    """Whether the access adds into memory, so that its order among its kind does not matter."""
    if r.name == "raw":
        return bool(r.arguments[1] & 2)
    adds = {"asc_copy_ub2gm_align": r.arguments[0], "asc_copy_l0c2gm": r.arguments[1] >> 8}
    return a.space == "GM" and a.write and adds.get(r.name, 0) > 0


def span(a: Access) -> tuple[int, int]:
    steps = [0, a.stride * (a.rows - 1)] if a.rows else [0]
    return a.base + min(steps), a.base + max(steps) + a.row_bytes


def meet(a: Access, b: Access) -> bool:
    """Whether two accesses of one memory share a byte."""
    if a.rows > 1 and b.rows > 1 and a.rows * b.rows > 1 << 16:
        return True  # bounding boxes overlap, and are too many rows to compare
    for i in range(a.rows):
        low = a.base + i * a.stride
        for j in range(b.rows):
            other = b.base + j * b.stride
            if low < other + b.row_bytes and other < low + a.row_bytes:
                return True
    return False


def pair(m: Node, r: Record, a: Access, n: Node, s: Record, b: Access, space: str) -> Pair:
    one = (m.core[1], m.pipe, r.line, a.write)
    two = (n.core[1], n.pipe, s.line, b.write)
    return (min(one, two), max(one, two), space)
