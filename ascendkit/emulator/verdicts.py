"""What the judges of the runtime say of checked launches, mirrored from runtime/judge."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from ascendkit.emulator import toolchain
from ascendkit.emulator.device import core_name
from ascendkit.emulator.records import PIPES, SPACES


class _Finding(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_char * 24),
        ("site", ctypes.c_uint32),
        ("other_site", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("other_block", ctypes.c_uint32),
        ("aic", ctypes.c_uint8),
        ("sub", ctypes.c_uint8),
        ("pipe", ctypes.c_uint8),
        ("other_pipe", ctypes.c_uint8),
        ("other_aic", ctypes.c_uint8),
        ("other_sub", ctypes.c_uint8),
        ("space", ctypes.c_uint8),
        ("write", ctypes.c_uint8),
        ("other_write", ctypes.c_uint8),
        ("this_order", ctypes.c_uint8),
        ("part", ctypes.c_uint32),
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("detail", ctypes.c_char * 256),
    ]


@dataclass(frozen=True)
class RawFinding:
    """What a judge of the runtime found, before it has a severity, a buffer and Python lines.

    ``site`` and ``pipe`` are those of the later access, ``other_*`` those of the earlier one;
    ``other_site`` is 0 where there is none. Sites are lines of the generated source.

    Attributes:
        base: an offset on chip, an address in global memory.
        count: how often it was seen in the launch.
        this_order: judged for the order of this run only, not for all schedules.
        kernel: name of the kernel that ran.
    """

    code: str
    site: int
    other_site: int
    block: int
    other_block: int
    core: str
    other_core: str
    pipe: str
    other_pipe: str
    space: str
    write: bool
    other_write: bool
    this_order: bool
    base: int
    bytes: int
    count: int
    detail: str
    kernel: str = ""


def findings(kernel: str = "") -> list[RawFinding]:
    """What the judges of the launches with ``check`` found since the last call, sorted."""
    read, clear = toolchain.symbol("ak_findings"), toolchain.symbol("ak_clear_findings")
    size = toolchain.symbol("ak_finding_bytes")()
    if size != ctypes.sizeof(_Finding):
        raise RuntimeError(f"emulator runtime: findings of {size} bytes")
    read.argtypes, read.restype = [ctypes.POINTER(ctypes.POINTER(_Finding))], ctypes.c_uint64
    first = ctypes.POINTER(_Finding)()
    count = read(ctypes.byref(first))

    found = [
        RawFinding(
            f.code.decode(),
            f.site,
            f.other_site,
            f.block,
            f.other_block,
            core_name(f.aic, f.sub),
            core_name(f.other_aic, f.other_sub),
            PIPES[f.pipe],
            PIPES[f.other_pipe],
            SPACES[f.space],
            bool(f.write),
            bool(f.other_write),
            bool(f.this_order),
            f.base,
            f.bytes,
            f.count,
            f.detail.decode(errors="replace"),
            kernel,
        )
        for f in first[:count]
    ]
    clear()
    return found


class _Candidate(ctypes.Structure):
    _fields_ = [
        ("site", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("space", ctypes.c_uint8),
        ("sub", ctypes.c_uint8),
        ("aic", ctypes.c_uint8),
        ("pipe", ctypes.c_uint8),
        ("region", ctypes.c_uint32),
        ("base", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class Candidate:
    """Reads, at one site, of bytes [base, end) that nobody had written: some of them or all.

    ``base`` is an offset on chip, an address in global memory, there of region number ``region``.
    """

    site: int
    block: int
    core: str
    pipe: str
    space: str
    sub: int
    region: int
    base: int
    end: int
    count: int


def candidates() -> list[Candidate]:
    """Of the last checked launch, by site."""
    read = toolchain.symbol("ak_candidates")
    read.argtypes, read.restype = [ctypes.POINTER(ctypes.POINTER(_Candidate))], ctypes.c_uint64
    first = ctypes.POINTER(_Candidate)()
    count = read(ctypes.byref(first))
    return [
        Candidate(
            c.site,
            c.block,
            core_name(c.aic, c.sub),
            PIPES[c.pipe],
            SPACES[c.space],
            c.sub,
            c.region,
            c.base,
            c.end,
            c.count,
        )
        for c in first[:count]
    ]


def order_matters() -> bool:
    """Whether the last checked launch may have had other results with other host threads."""
    return bool(toolchain.symbol("ak_order_matters")())


def written(region: int, size: int, *, unset: bool = False) -> Any:
    """A mask of the bytes of region number ``region`` that the last checked launch wrote, None if
    it wrote none; ``unset``: those that it wrote with bytes that had no value."""
    import numpy as np

    read = toolchain.symbol("ak_written")
    read.argtypes, read.restype = [ctypes.c_uint64, ctypes.c_uint32], ctypes.c_void_p
    address = read(region, unset)
    if not address or not size:
        return None
    packed = np.ctypeslib.as_array(
        ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8)), ((size + 7) // 8,)
    )
    return np.unpackbits(packed, bitorder="little", count=size).view(bool)


def journal() -> dict[int, Any]:
    """What each core did in the last launch with a journal: by block << 2 | core (cube core 0,
    vector cores 1 and 2), one word an instruction, its site in the bits from 40 on."""
    import numpy as np

    read = toolchain.symbol("ak_journal")
    read.argtypes = [ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64))]
    read.restype = ctypes.c_uint64
    first = ctypes.POINTER(ctypes.c_uint64)()
    count = read(ctypes.byref(first))
    if not count:
        return {}
    words = np.ctypeslib.as_array(first, (count,)).copy()
    found, at = {}, 0
    while at < count:
        size = int(words[at + 1])
        found[int(words[at])] = words[at + 2 : at + 2 + size]
        at += 2 + size
    return found


def watch(address: int) -> None:
    """The next checked launch notes who is the last to write the byte at ``address``."""
    function = toolchain.symbol("ak_watch")
    function.argtypes = [ctypes.c_uint64]
    function(address)


def watched() -> tuple[int, int, str, str] | None:
    """Site, block, core and pipe of that write, None: there was none; ends the watch."""
    read = toolchain.symbol("ak_watched")
    read.argtypes, read.restype = [ctypes.POINTER(_Finding)], ctypes.c_uint32
    f = _Finding()
    if not read(ctypes.byref(f)):
        return None
    return f.site, f.block, core_name(f.aic, f.sub), PIPES[f.pipe]


def finding(code: str, kernel: str, **fields: Any) -> RawFinding:
    """A finding of code ``code`` with the ``fields`` that matter."""
    plain: dict[str, Any] = dict(
        site=0,
        other_site=0,
        block=0,
        other_block=0,
        core="",
        other_core="",
        pipe="S",
        other_pipe="S",
        space="GM",
        write=True,
        other_write=False,
        this_order=False,
        base=0,
        bytes=0,
        count=1,
        detail="",
    )
    return RawFinding(code=code, kernel=kernel, **{**plain, **fields})
