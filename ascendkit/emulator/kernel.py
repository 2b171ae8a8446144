"""A compiled kernel and its launches."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ascendkit.emulator import (
    checked,
    device,
    fresh,
    judged,
    mutants,
    source,
    tensors,
    toolchain,
    verdicts,
)
from ascendkit.emulator.errors import EmulatorError, SourceError
from ascendkit.emulator.mutants import Mutant
from ascendkit.emulator.replay import Schedule
from ascendkit.errors import bad_value, unknown

CORES = 32
"""AI cores of an Ascend 950; each has one cube core and two vector cores."""


@dataclass
class Run:
    """One finished launch.

    Attributes:
        outputs: the tensor arguments, as passed (kernels write in place).
        grid: blocks launched.
        seconds: wall-clock seconds of the launch on this host; says nothing about an NPU.
        findings: what the judges found, of a launch with ``check=True``.
    """

    outputs: tuple[Any, ...]
    grid: int
    seconds: float
    kernel: str
    counts: dict[str, int] = field(default_factory=dict)
    findings: tuple[verdicts.RawFinding, ...] = ()


def check_by_default() -> bool:
    """Whether judges run at every launch: as ASCENDKIT_EMULATOR_CHECK says (1, 0); if it says
    nothing, inside ``judged()`` only."""
    given = os.environ.get("ASCENDKIT_EMULATOR_CHECK", "")
    return given != "0" if given else judged.inside()


class EmulatedKernel:
    """One kernel of a source text, compiled for this host on first use."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        found = source.kernels(text)
        if name is None and len(found) > 1:
            raise SourceError(f"the source has {len(found)} kernels ({', '.join(found)}): name one")
        if name is not None and name not in found:
            raise unknown("kernel", name, found)
        self.kernel = found[name] if name is not None else next(iter(found.values()))
        self._indirect = source.reads_pointers(text)
        self.findings: tuple[verdicts.RawFinding, ...] = ()
        """Of the last launch, if it was checked."""
        self.suspects = 0
        """Reads of bytes that nobody wrote, in the last launch."""
        self.regions: tuple[device.Region, ...] = ()
        """The tensors of the last launch."""

    @cached_property
    def _plain(self) -> Any:
        return toolchain.compile_kernel(self.text, self.kernel, trace=False)

    @cached_property
    def _traced(self) -> Any:
        return toolchain.compile_kernel(self.text, self.kernel, trace=True)

    @cached_property
    def _judged(self) -> Any:
        return toolchain.compile_kernel(self.text, self.kernel, trace=True, raw=True)

    def compile(self, *, trace: bool = False, raw: bool = False) -> Any:
        """The loaded shared object; ``raw``: scalar and SIMT code reports its accesses."""
        return self._judged if raw else self._traced if trace else self._plain

    def launch(
        self,
        args: Sequence[Any],
        *,
        grid: int,
        cores: int = CORES,
        threads: int = 0,
        replay: int = 0,
        trace: int = 0,
        timeout_s: float = 0.0,
        control: bool = False,
        check: bool | None = None,
        advice: bool = False,
        strict: bool = False,
        mutate: Sequence[Mutant] = (),
        schedule: str | Path | None = None,
        extra_regions: Sequence[device.Region] = (),
    ) -> float:
        """Run with ``args`` in the kernel's own parameter order; returns host seconds.

        ``trace=1`` counts instructions, ``trace=2`` also writes their records (``records.read``).
        ``control`` follows control flow and moves no data, so that shapes may be larger than memory
        and tensors may be on ``meta``; scalar code that reads data is an error then.
        ``check`` runs the judges, which leave ``findings``; the default is that of the environment.
        ``strict`` does not count on copies of one pipe being in order (AK-RACE-005).
        ``advice`` lets them also say what is right but may be slow.
        ``mutate`` executes instructions wrongly (``mutants``); those inside vector functions need
        a traced launch. ``schedule`` replays a saved order (``replay``), for the same arguments.

        Raises:
            ValueError, TypeError: wrong number or kind of arguments, grid or cores out of range.
            EmulatorError: the kernel failed; carries code, line and core.
        """
        parameters = self.kernel.parameters
        if len(args) != len(parameters):
            names = ", ".join(p.name for p in parameters)
            raise bad_value(
                f"{self.kernel.name}: arguments", len(args), f"{len(parameters)} ({names})"
            )
        if not 0 <= grid <= 1 << 20:
            raise bad_value("grid", grid, "0..1048576 blocks")
        if not 1 <= cores <= 1024:
            raise bad_value("cores", cores, "1..1024 AI cores", CORES)
        if not timeout_s >= 0:
            raise bad_value("timeout_s", timeout_s, "0 (no limit) or more seconds", 0)
        if schedule is not None:
            order = Schedule.load(schedule).options(self.text, args)
            replay, threads = order["replay"], order["threads"]
        values = (ctypes.c_uint64 * max(1, len(args)))()
        slots = (ctypes.c_void_p * max(1, len(args)))()
        regions = list(extra_regions)
        given: list[tuple[int, str, Any]] = []
        for i, (p, arg) in enumerate(zip(parameters, args)):
            if p.pointer and hasattr(arg, "data_ptr"):
                tensors.check_dtype(p.name, p.ctype, arg)
                if control and arg.device.type == "meta":
                    at = tensors.imagined(p.name, arg, regions)
                    values[i] = at.base
                else:
                    at = tensors.region(p.name, arg)
                    values[i] = arg.data_ptr()
                    given.append((i, p.name, arg))
                regions.append(at)
            elif p.pointer:
                values[i] = 0 if arg is None else int(arg)
            else:
                values[i] = int.from_bytes(tensors.scalar_bytes(p.ctype, arg), "little")
            slots[i] = ctypes.addressof(values) + 8 * i
        check = check_by_default() if check is None else check
        self.findings, self.suspects, self.regions = (), 0, tuple(regions)
        module = self.compile(trace=trace > 0, raw=trace > 1 or check)
        if grid == 0:
            return 0.0
        entry = _entry(module)
        options: dict[str, Any] = dict(
            grid=grid,
            kind=self.kernel.kind,
            cores=cores,
            threads=threads,
            replay=replay,
            trace=trace,
            timeout_s=timeout_s,
            indirect=self._indirect,
            control=control,
            advice=advice,
            strict=strict,
        )

        def launch(
            regions: Sequence[device.Region], *, judged: bool = True, **more: Any
        ) -> device.Failure | None:
            # Mutants inside vector functions are in the traced build alone.
            code = entry
            if not judged and not mutate:
                code = _entry(self.compile(trace=trace > 0))
            return device.launch(code, slots, regions, **{**options, **more})

        start = time.perf_counter()
        with mutants.active(mutate):
            if check and not control:
                one = checked.Checked(
                    self.kernel.name,
                    given,
                    values.__setitem__,
                    launch,
                    extra_regions,
                    in_place=self._indirect,
                    replay=replay,
                )
                failure, self.findings, self.regions = one.run()
                self.suspects = one.suspects
            else:
                failure = launch(regions, check=check)
                fresh.forget(args)
                if check:
                    self.findings = tuple(verdicts.findings(self.kernel.name))
        seconds = time.perf_counter() - start
        if failure is not None:
            raise self._error(failure, module)
        return seconds

    def _error(self, failure: device.Failure, module: Any) -> EmulatorError:
        rows = self.text.splitlines()
        line = _line_of(failure.pc, module, rows) if failure.pc else failure.line
        line = line or failure.line
        if not line and failure.pc:  # nothing but its own code: the function
            line = source.head_line(self.text, self.kernel.name)
        text = rows[line - 1].strip() if 0 < line <= len(rows) else ""
        return EmulatorError(failure.code, failure.message, line, text, failure.core)


def _entry(module: Any) -> int:
    return ctypes.cast(module.symbol("ak_entry"), ctypes.c_void_p).value or 0


def _line_of(pc: int, module: Any, rows: Sequence[str]) -> int:
    """The line of the generated source (``rows``) that holds machine address ``pc``.

    0 if unknown: a loop of nothing has no line, or an empty one.
    """
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = next((int(row.split("-")[0], 16) for row in maps if str(module.path) in row), 0)
    if not base:
        return 0
    command = ["addr2line", "-i", "-e", str(module.path), hex(pc - base)]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    for place in reversed(output.splitlines()):
        name, _, number = place.partition(" ")[0].rpartition(":")
        if not name.endswith("kernel.asc") or not number.isdigit():
            continue
        if any(row.strip() for row in rows[int(number) - 1 : int(number)]):
            return int(number)
    return 0
