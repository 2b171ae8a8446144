"""The C side of a launch: structures mirrored from runtime/state.h, and the call."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ascendkit.emulator import toolchain

INDIRECT, CONTROL, CHECK, JOURNAL, ADVICE, STRICT = 1, 2, 4, 8, 16, 32
VIEW_DIMS = 8


class _Region(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("before", ctypes.c_uint64),
        ("after", ctypes.c_uint64),
        ("undefined", ctypes.c_void_p),
    ]


class _View(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("run", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("region", ctypes.c_uint32),
        ("dims", ctypes.c_uint32),
        ("size", ctypes.c_uint64 * VIEW_DIMS),
        ("stride", ctypes.c_uint64 * VIEW_DIMS),
    ]


class _PoisonRange(ctypes.Structure):
    _fields_ = [
        ("space", ctypes.c_uint32),
        ("sub", ctypes.c_uint32),
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    ]


class _Poisoning(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("ranges", ctypes.POINTER(_PoisonRange)),
    ]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("regions", ctypes.POINTER(_Region)),
        ("region_count", ctypes.c_uint64),
        ("grid", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("cores", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("replay", ctypes.c_uint32),
        ("trace", ctypes.c_uint32),
        ("timeout_s", ctypes.c_double),
        ("flags", ctypes.c_uint64),
        ("views", ctypes.POINTER(_View)),
        ("view_count", ctypes.c_uint64),
        ("poison", _Poisoning),
    ]


class _Report(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_char * 32),
        ("message", ctypes.c_char * 2048),
        ("site", ctypes.c_uint32),
        ("block", ctypes.c_uint32),
        ("sub", ctypes.c_uint32),
        ("aic", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("pc", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class Region:
    """Memory a kernel may address: a tensor's storage, or a part of it.

    ``before`` and ``after`` are guard bytes around it; ``undefined`` is the address of one byte for
    each of its bytes, not 0 where it has no value before the launch (0: all have one).
    """

    name: str
    base: int
    bytes: int
    before: int = 0
    after: int = 0
    undefined: int = 0


@dataclass(frozen=True)
class View:
    """The bytes of one tensor inside region number ``region``: ``run`` bytes from ``base`` on,
    repeated along dimensions of (size, stride in bytes), strides falling."""

    name: str
    region: int
    base: int
    run: int
    dims: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Poison:
    """What memory holds before anybody writes it: all ones (kind 0), or large numbers of
    alternating sign (1; 2: the opposite signs), in ``ranges`` (space, sub, offset, bytes) alone
    if there are any."""

    kind: int = 0
    ranges: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True)
class Failure:
    """What stopped a launch."""

    code: str
    message: str
    line: int
    core: str
    pc: int


@cache
def _launch() -> Any:
    function = toolchain.symbol("ak_launch")
    function.argtypes = [ctypes.POINTER(_Spec), ctypes.POINTER(_Report)]
    function.restype = ctypes.c_int
    abi = toolchain.symbol("ak_abi")()
    mine = ctypes.sizeof(_Spec) << 16 | ctypes.sizeof(_Report)
    if abi != mine:
        raise RuntimeError(f"emulator runtime: got ABI {abi:#x}, wanted {mine:#x}")
    return function


def default_threads() -> int:
    """Host threads a launch uses: one a CPU this process may use, at most 8."""
    try:
        return max(1, min(8, len(os.sched_getaffinity(0))))
    except AttributeError:
        return max(1, min(8, os.cpu_count() or 1))


def launch(
    entry: int,
    slots: ctypes.Array[Any],
    regions: Sequence[Region],
    *,
    grid: int,
    kind: int,
    cores: int,
    threads: int = 0,
    replay: int = 0,
    trace: int = 0,
    timeout_s: float = 0.0,
    indirect: bool = False,
    control: bool = False,
    check: bool = False,
    strict: bool = False,
    journal: bool = False,
    advice: bool = False,
    views: Sequence[View] = (),
    poison: Poison = Poison(),
) -> Failure | None:
    """Run ``grid`` blocks. ``slots`` are pointers to the argument values.

    Returns None, or what stopped the launch.
    """
    table = (_Region * max(1, len(regions)))(
        *(
            _Region(r.base, r.bytes, r.name.encode(), r.before, r.after, r.undefined or None)
            for r in regions
        )
    )
    seen = (_View * max(1, len(views)))(*map(_view, views))
    ranges = (_PoisonRange * max(1, len(poison.ranges)))(*(_PoisonRange(*r) for r in poison.ranges))
    flags = (
        (INDIRECT, indirect),
        (CONTROL, control),
        (CHECK, check),
        (JOURNAL, journal),
        (ADVICE, advice),
        (STRICT, strict),
    )
    spec = _Spec(
        entry,
        ctypes.cast(slots, ctypes.c_void_p).value,
        table,
        len(regions),
        grid,
        kind,
        cores,
        threads or default_threads(),
        replay,
        max(trace, int(check or journal)),
        timeout_s,
        INDIRECT * indirect
        | CONTROL * control
        | CHECK * check
        | JOURNAL * journal
        | ADVICE * advice
        | STRICT * strict,
        seen,
        len(views),
        _Poisoning(poison.kind, len(poison.ranges), ranges),
    )
    report = _Report()
    if _launch()(ctypes.byref(spec), ctypes.byref(report)) == 0:
        return None
    core = f"block {report.block} {'AIC' if report.aic else f'AIV{report.sub}'}"
    code = report.code.decode()
    if code.startswith("AK-DEADLOCK"):
        core = ""
    return Failure(code, report.message.decode(errors="replace"), report.site, core, report.pc)


def _view(v: View) -> _View:
    sizes, strides = [d[0] for d in v.dims], [d[1] for d in v.dims]
    array = ctypes.c_uint64 * VIEW_DIMS
    return _View(
        v.base, v.run, v.name.encode(), v.region, len(v.dims), array(*sizes), array(*strides)
    )


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
    from ascendkit.emulator.records import PIPES, SPACES

    read, clear = toolchain.symbol("ak_findings"), toolchain.symbol("ak_clear_findings")
    size = toolchain.symbol("ak_finding_bytes")()
    if size != ctypes.sizeof(_Finding):
        raise RuntimeError(f"emulator runtime: findings of {size} bytes")
    read.argtypes, read.restype = [ctypes.POINTER(ctypes.POINTER(_Finding))], ctypes.c_uint64
    first = ctypes.POINTER(_Finding)()
    count = read(ctypes.byref(first))

    def core(aic: int, sub: int) -> str:
        return "AIC" if aic else f"AIV{sub}"

    found = [
        RawFinding(
            f.code.decode(),
            f.site,
            f.other_site,
            f.block,
            f.other_block,
            core(f.aic, f.sub),
            core(f.other_aic, f.other_sub),
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
    from ascendkit.emulator.records import PIPES, SPACES

    read = toolchain.symbol("ak_candidates")
    read.argtypes, read.restype = [ctypes.POINTER(ctypes.POINTER(_Candidate))], ctypes.c_uint64
    first = ctypes.POINTER(_Candidate)()
    count = read(ctypes.byref(first))
    return [
        Candidate(
            c.site,
            c.block,
            "AIC" if c.aic else f"AIV{c.sub}",
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
    """A mask of the bytes of region number ``region`` that the last checked launch wrote;
    ``unset``: those that it wrote with bytes that had no value."""
    import numpy as np

    read = toolchain.symbol("ak_written")
    read.argtypes, read.restype = [ctypes.c_uint64, ctypes.c_uint32], ctypes.c_void_p
    address = read(region, unset)
    if not address or not size:
        return np.zeros(size, dtype=bool)
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
    from ascendkit.emulator.records import PIPES

    read = toolchain.symbol("ak_watched")
    read.argtypes, read.restype = [ctypes.POINTER(_Finding)], ctypes.c_uint32
    f = _Finding()
    if not read(ctypes.byref(f)):
        return None
    return f.site, f.block, "AIC" if f.aic else f"AIV{f.sub}", PIPES[f.pipe]


def stream() -> bytes:
    """Records of the launches traced at level 2 since the last call."""
    data = ctypes.c_char_p()
    read, clear = toolchain.symbol("ak_stream"), toolchain.symbol("ak_clear_stream")
    read.argtypes, read.restype = [ctypes.POINTER(ctypes.c_char_p)], ctypes.c_uint64
    size = read(ctypes.byref(data))
    found = ctypes.string_at(data, size) if size else b""
    clear()
    return found


class _Slot(ctypes.Structure):
    pass


_Slot._fields_ = [
    ("name", ctypes.c_char_p),
    ("count", ctypes.c_uint64),
    ("fault", ctypes.c_uint32),
    ("index", ctypes.c_uint32),
    ("next", ctypes.POINTER(_Slot)),
    ("action", ctypes.c_uint8),
]


def slots() -> list[tuple[str, int]]:
    """Instruction names and how often each has run in traced launches, by index."""
    function = toolchain.symbol("ak_slots")
    function.restype = ctypes.POINTER(_Slot)
    found: list[tuple[str, int]] = []
    at = function()
    while at:
        found.append((at.contents.name.decode(), int(at.contents.count)))
        at = at.contents.next
    return found[::-1]
