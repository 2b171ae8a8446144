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


def core_name(aic: int, sub: int) -> str:
    """The cube core of a block, or one of its vector cores."""
    return "AIC" if aic else f"AIV{sub}"


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
        sum(bit for bit, on in flags if on),
        seen,
        len(views),
        _Poisoning(poison.kind, len(poison.ranges), ranges),
    )
    report = _Report()
    if _launch()(ctypes.byref(spec), ctypes.byref(report)) == 0:
        return None
    code = report.code.decode()
    # A deadlock is no core's own, unless one core did not come back.
    where = f"block {report.block} {core_name(report.aic, report.sub)}"
    core = "" if code.startswith("AK-DEADLOCK") and not report.pc else where
    return Failure(code, report.message.decode(errors="replace"), report.site, core, report.pc)


def _view(v: View) -> _View:
    sizes, strides = [d[0] for d in v.dims], [d[1] for d in v.dims]
    array = ctypes.c_uint64 * VIEW_DIMS
    return _View(
        v.base, v.run, v.name.encode(), v.region, len(v.dims), array(*sizes), array(*strides)
    )


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
