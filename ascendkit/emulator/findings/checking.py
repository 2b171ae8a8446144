"""``check``: one launch with all judges, and what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.findings import render
from ascendkit.emulator.findings.finding import ONE_RUN, Finding, Reader
from ascendkit.emulator.findings.merge import identity, merged
from ascendkit.emulator.kernel import CORES, EmulatedKernel, Run
from ascendkit.errors import bad_value


class FindingsError(RuntimeError):
    """A kernel has findings; ``result`` holds them."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(f"{render.summary(result.findings)}\n\n{result}")
        self.result = result


@dataclass
class CheckResult:
    """What a check found.

    Attributes:
        findings: errors first, then in the order of the generated source.
        run: the launch, None if it did not end.
        source: the generated source that ran.
    """

    findings: tuple[Finding, ...] = ()
    run: Run | None = None
    source: str = ""
    replays: int = field(default=0)

    @property
    def ok(self) -> bool:
        """The launch ended, without a finding of severity error."""
        return self.run is not None and not any(f.severity == "error" for f in self.findings)

    def raise_on_findings(self, severities: Sequence[str] = ("error",)) -> CheckResult:
        """Raise FindingsError if the launch did not end or there is a finding of one of
        ``severities``; else return self."""
        if self.run is None or any(f.severity in severities for f in self.findings):
            raise FindingsError(self)
        return self

    def to_json(self) -> dict[str, Any]:
        """Plain containers."""
        return {
            "ok": self.ok,
            "kernel": self.run.kernel if self.run else "",
            "findings": [f.to_json() for f in self.findings],
        }

    def __str__(self) -> str:
        return render.plain(self.findings) or "no findings"


def check(
    kernel_or_source: Any,
    *args: Any,
    grid: int | None = None,
    cores: int = CORES,
    name: str | None = None,
    pass_configs: Mapping[str, Any] | None = None,
    replays: int = 0,
    raise_on_findings: bool = False,
    **launch: Any,
) -> CheckResult:
    """Run one kernel with all judges.

    Args:
        kernel_or_source: AscendC text, the path of a ``.asc`` file, an EmulatedKernel, a TileLang
            ``prim_func``, or a kernel compiled inside ``active()``.
        args: as for ``run``: tensors (written in place) and numbers.
        grid: blocks to launch; required for source, taken from the function otherwise.
        cores: AI cores of the emulated chip.
        name: which kernel, when the source holds several.
        pass_configs: TileLang pass options of a ``prim_func``; those of a ``@tilelang.jit``
            function are ``fn.pass_configs``. Other options make another program.
        replays: further launches in that many seeded legal orders. They write ``args`` again, so
            that a kernel that adds to its output adds again.
        raise_on_findings: raise FindingsError if the result is not ``ok``.
        launch: further arguments of ``EmulatedKernel.launch``.

    Returns:
        The findings. A launch that fails is a finding too; arguments that do not fit are not.

    Raises:
        ValueError, TypeError: arguments do not fit.
        FindingsError: only with ``raise_on_findings``.
    """
    if replays < 0:
        raise bad_value("replays", replays, "0 or more further launches", 0)
    launch = {"timeout_s": 60.0, **launch, "cores": cores, "check": True}
    try:
        subject = _Subject.of(kernel_or_source, grid, name, pass_configs)
    except EmulatorError as error:
        text = _text(kernel_or_source)
        result = CheckResult((Reader(text).of_error(error),), source=text)
        return result.raise_on_findings() if raise_on_findings else result
    found: dict[Any, Finding] = {}
    run = None
    for seed in range(replays + 1):
        order = {**launch, "replay": seed} if seed else launch
        once, findings = subject.launch(args, order)
        run = once if seed == 0 else run
        for f in findings:
            found.setdefault(identity(f), f)
    scope = f"this order and {replays} replays" if replays else ONE_RUN
    ordered = sorted(found.values(), key=_order)
    result = CheckResult(
        tuple(replace(f, scope=scope) if f.scope == ONE_RUN else f for f in ordered),
        run,
        subject.source,
        replays,
    )
    return result.raise_on_findings() if raise_on_findings else result


def _key(f: Finding) -> tuple[Any, ...]:
    return (f.code, f.here.line, f.other.line if f.other else 0, f.space, f.buffer)


def _order(f: Finding) -> tuple[Any, ...]:
    from ascendkit.emulator.findings.codes import SEVERITIES

    return (SEVERITIES.index(f.severity), f.here.line, *_key(f))


@dataclass
class _Subject:
    """What is checked: a lowered function, or one kernel of a source."""

    source: str
    grid: int | None
    kernel: EmulatedKernel | None = None
    lowered: Any = None

    @classmethod
    def of(
        cls,
        given: Any,
        grid: int | None,
        name: str | None,
        pass_configs: Mapping[str, Any] | None,
    ) -> _Subject:
        from ascendkit.emulator.lowered import lowered_kernel, no_configs

        if isinstance(given, (str, Path)):
            given = EmulatedKernel(_text(given), name)
        if isinstance(given, EmulatedKernel):
            no_configs(pass_configs, "source text")
            return cls(given.text, _blocks(grid), kernel=given)
        if grid is not None:
            raise ValueError(f"grid: got {grid}, wanted none: a TileLang function has its own")
        given = lowered_kernel(given, pass_configs, "source text, a path or a prim_func")
        return cls(given.kernel_source, None, lowered=given)

    def launch(self, args: Sequence[Any], options: dict[str, Any]) -> tuple[Run | None, list[Any]]:
        lowered, kernel = self.lowered, self.kernel
        reader = Reader(self.source, lowered.origins if lowered else None)
        run, failure = None, None
        try:
            if kernel is not None:
                assert self.grid is not None
                seconds = kernel.launch(args, grid=self.grid, **options)
                run = Run(tuple(args), self.grid, seconds, kernel.kernel.name)
            else:
                from ascendkit.emulator.running import run as launch

                run = launch(lowered, *args, **options)
        except EmulatorError as error:
            failure = error
        raw = kernel.findings if kernel is not None else lowered.findings
        found = merged(reader.of_raw(r, self._regions(r.kernel)) for r in raw)
        if run is not None:
            run.findings = tuple(raw)
        if failure is not None:
            found.insert(0, reader.of_error(failure, kernel.kernel.name if kernel else ""))
        return run, found

    def _regions(self, name: str) -> Any:
        kernel = self.kernel if self.kernel is not None else self.lowered.kernel(name)
        return kernel.regions


def _blocks(grid: int | None) -> int:
    if grid is None:
        raise ValueError("grid: got None, wanted the number of blocks to launch")
    return grid


def _text(source: Any) -> str:
    from ascendkit.emulator.running import _text as read

    return read(source) if isinstance(source, (str, Path)) else ""
