"""The C side of a launch: structures mirrored from runtime/state.h, and the call."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ascendkit.emulator import toolchain

INDIRECT, CONTROL, CHECK = 1, 2, 4


class _Region(ctypes.Structure):
    _fields_ = [("base", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("name", ctypes.c_char_p)]


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
    """A tensor's bytes in global memory."""

    name: str
    base: int
    bytes: int


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
) -> Failure | None:
    """Run ``grid`` blocks. ``slots`` are pointers to the argument values.

    Returns None, or what stopped the launch.
    """
    table = (_Region * max(1, len(regions)))(
        *(_Region(r.base, r.bytes, r.name.encode()) for r in regions)
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
        max(trace, int(check)),
        timeout_s,
        INDIRECT * indirect | CONTROL * control | CHECK * check,
    )
    report = _Report()
    if _launch()(ctypes.byref(spec), ctypes.byref(report)) == 0:
        return None
    core = f"block {report.block} {'AIC' if report.aic else f'AIV{report.sub}'}"
    code = report.code.decode()
    if code.startswith("AK-DEADLOCK"):
        core = ""
    return Failure(code, report.message.decode(errors="replace"), report.site, core, report.pc)


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
