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
_HEAD = struct.Struct("<IIIBBBBQQII")
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
    atomic: bool = False


@dataclass(frozen=True)
class Record:
    """One executed instruction.

    ``issue`` counts the instructions that the scalar core of ``core`` had issued, this one
    included: an instruction comes after every wait of pipe S (and every asc_sync) of its core whose
    ``issue`` is not larger, and after whatever that wait came after. Waits of another pipe hold
    that pipe alone. Within a pipe, records are in program order.

    ``arguments``:

    - asc_sync_notify: the pipe that will wait (index into PIPES), the event; ``pipe`` is the
      source.
      asc_sync_wait: the pipe that has set, the event; ``pipe`` is the one that waits. Per core,
      pair of pipes and event, the n-th wait takes the n-th set.
    - asc_sync: every pipe of the core has drained, and starts again after it. asc_sync_pipe: the
      pipe has finished what precedes.
    - asc_lock: how many unlocks of the id it waits for (0: none, or the non-blocking form), the
      id.
      asc_unlock: its number, from 0, among the unlocks of the id in program order, the id.
    - asc_sync_*_arrive and _wait: the scope (0 inter, 1 subblock, 2 block, 3 intra), the flag as
      the core names it. intra: arrivals of the cube core with ids from 16 go to vector core 1,
      those of vector core s raise flag ``id % 16 + 16 * s`` of the cube core. block: the cube
      core signals both vector cores; both vector cores together signal the cube core. subblock:
      both vector cores together signal both. inter: all cores of the kind in the launch together
      signal all of them; the n-th wait of a core needs the n-th arrival of every core. A flag is
      a counter of the core that waits, the same for all scopes; the n-th wait takes the n-th
      signal.
    - asc_mmad: shape; unit flag in the low byte, bit 8 says that the accumulator starts at zero.
      asc_copy_l0c2gm and _l0c2ub: unit flag, quantisation.
    - asc_vf_call: threads, threads along x. asc_syncthreads and warp collectives: the thread.
    - asc_mem_bar: none; ``raw``: the first thread, and in the second word bit 0: SIMT, bit 1:
      atomic, from bit 8 how much the thread grows from row to row (modulo 2**32).
    """

    name: str
    line: int
    block: int
    pipe: str
    core: str
    accesses: tuple[Access, ...]
    arguments: tuple[int, int]
    issue: int = 0


def read() -> list[Record]:
    """Records of the launches with ``trace=2`` since the last call."""
    return list(parse(device.stream(), [name for name, _ in device.slots()]))


def parse(data: bytes, names: list[str]) -> Iterator[Record]:
    """Decode a stream; ``names`` are the slots by index."""
    at = 0
    while at < len(data):
        op, line, block, pipe, aic, sub, count, a0, a1, issue, _ = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        accesses = []
        for _ in range(count):
            space, write, where, atomic, *shape = _ACCESS.unpack_from(data, at)
            rows, base, row_bytes, stride = shape
            at += _ACCESS.size
            accesses.append(
                Access(
                    SPACES[space], bool(write), where, rows, base, row_bytes, stride, bool(atomic)
                )
            )
        core = "AIC" if aic else f"AIV{sub}"
        yield Record(names[op], line, block, PIPES[pipe], core, tuple(accesses), (a0, a1), issue)
