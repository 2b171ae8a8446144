"""The record stream in Python: what each instruction did, in the order in which it was executed.

Within a pipe that is the order of issue; across pipes it is one legal order. Judges read this.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ascendkit.emulator import device

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL")
SPACES = ("GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "MXA", "MXB", "SS")
_HEAD = struct.Struct("<IIIBBBBQQ")
_ACCESS = struct.Struct("<BBBBIQQq")


@dataclass(frozen=True)
class Access:
    """``rows`` runs of ``row_bytes`` bytes, ``stride`` apart, from ``base``.

    ``base`` is an offset on chip and an address in global memory; ``sub`` is the vector core whose
    unified buffer is meant.
    """

    space: str
    write: bool
    sub: int
    rows: int
    base: int
    row_bytes: int
    stride: int


@dataclass(frozen=True)
class Record:
    """One executed instruction.

    ``arguments``: synchronisation: the other pipe and the id; asc_mmad: shape and flags;
    asc_vf_call: threads.
    """

    name: str
    line: int
    block: int
    pipe: str
    core: str
    accesses: tuple[Access, ...]
    arguments: tuple[int, int]


def read() -> list[Record]:
    """Records of the launches with ``trace=2`` since the last call."""
    return list(parse(device.stream(), [name for name, _ in device.slots()]))


def parse(data: bytes, names: list[str]) -> Iterator[Record]:
    """Decode a stream; ``names`` are the slots by index."""
    at = 0
    while at < len(data):
        op, line, block, pipe, aic, sub, count, a0, a1 = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        accesses = []
        for _ in range(count):
            space, write, where, _, rows, base, row_bytes, stride = _ACCESS.unpack_from(data, at)
            at += _ACCESS.size
            accesses.append(
                Access(SPACES[space], bool(write), where, rows, base, row_bytes, stride)
            )
        core = "AIC" if aic else f"AIV{sub}"
        yield Record(names[op], line, block, PIPES[pipe], core, tuple(accesses), (a0, a1))
