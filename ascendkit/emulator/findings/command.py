"""``python -m ascendkit.emulator check | fits | lint``: findings on a command line.

A kernel is a ``.asc`` file, or ``module:function`` (``file.py:function``) of a TileLang function
with the arguments of its factory as ``key=value``.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.emulator.findings import exits
from ascendkit.errors import bad_value, unknown

OUTPUTS = ("table", "json", "html")


def add(commands: Any) -> None:
    """Add the three commands to the parser of ``python -m ascendkit.emulator``."""
    check = commands.add_parser("check", help="launch one kernel with all judges")
    subject(check)
    launch(check)
    check.add_argument("--replays", type=int, default=0, help="further launches in random orders")
    check.add_argument("--timeout", type=float, default=60, help="seconds (default 60)")
    for name, text in (
        ("fits", "what a kernel needs of each on-chip memory, without a run"),
        ("lint", "what is wrong with a kernel, without a run"),
    ):
        subject(commands.add_parser(name, help=text))


def subject(parser: argparse.ArgumentParser) -> None:
    """The kernel and the arguments of its factory."""
    parser.add_argument("subject", metavar="KERNEL", help="FILE.asc or module:function")
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="factory arguments; output=table|json|html"
    )


def launch(parser: argparse.ArgumentParser) -> None:
    """What a launch needs."""
    parser.add_argument("--grid", type=int, help="blocks to launch (of a .asc file)")
    parser.add_argument("--kernel", help="which kernel, if the file has several")
    parser.add_argument("--cores", type=int, default=32, help="AI cores of the chip (default 32)")
    parser.add_argument("--seed", type=int, default=0, help="seed of randn and randint")
    parser.add_argument("--arg", action="append", default=[], metavar="[NAME=]VALUE", help="as run")


def check(args: Any) -> int:
    """Run with judges; the exit code of the findings."""
    from ascendkit.emulator.findings.checking import check as run

    output, settings = settings_of(args.settings)
    options = {"cores": args.cores, "replays": args.replays, "timeout_s": args.timeout}
    if _is_source(args.subject) and not _readable(text := Path(args.subject).read_text()):
        return _result(run(text, grid=0), output)
    kernel, values, grid = launchable(args, settings)
    result = run(kernel, *values, grid=grid, **options)
    if result.run is not None and output == "table":
        print(f"{result.run.kernel}: {result.run.grid} blocks, {result.run.seconds:.2f} s here")
    return _result(result, output)


def launchable(args: Any, settings: dict[str, Any]) -> tuple[Any, list[Any], int | None]:
    """The kernel of a command line, its arguments and its grid.

    Raises:
        ValueError, TypeError: no such kernel, or arguments that do not fit.
        SourceError: a text that is not AscendC.
    """
    import torch

    from ascendkit.emulator.argument_text import parse
    from ascendkit.emulator.kernel import EmulatedKernel
    from ascendkit.emulator.lowered import LoweredKernel
    from ascendkit.emulator.source import Parameter

    torch.manual_seed(args.seed)
    if _is_source(args.subject):
        kernel = EmulatedKernel(Path(args.subject).read_text(), args.kernel)
        values = parse(args.arg, kernel.kernel.parameters)
        if args.grid is None:
            raise ValueError("--grid: wanted the number of blocks to launch")
        return kernel, values, args.grid
    lowered = LoweredKernel(load(args.subject, settings))
    names = [Parameter(n, "", True) for n in lowered._names]
    return lowered, parse(args.arg, names), args.grid


def lint(args: Any) -> int:
    """Static findings; their exit code."""
    from ascendkit.emulator.findings.lint import lint as run

    output, settings = settings_of(args.settings)
    if _is_source(args.subject):
        return _print(run(Path(args.subject)), output)
    kernel, configs = load(args.subject, settings), _options(args.subject)
    return _print([*run(kernel, configs), *_unused(args.subject, settings, kernel)], output)


def _unused(subject: str, settings: dict[str, Any], kernel: Any) -> list[Any]:
    """Arguments of the factory without which the same text is generated."""
    from ascendkit.emulator.findings import lint as module
    from ascendkit.emulator.findings.options import settings_without_effect
    from ascendkit.emulator.lowered import lower

    factory, configs = _factory(subject), _options(subject)
    if not settings or hasattr(factory, "buffer_map"):
        return []
    try:
        text = lower(kernel, configs)["source"]
    except Exception:  # TVM's errors have no common base; lint has said so
        return []
    found = settings_without_effect(factory, settings, configs, text)
    return [module.without_effect(what) for what in found]


def fits(args: Any) -> int:
    """Needs of each memory; the exit code says whether a 950 holds them."""
    from ascendkit.emulator.findings.fits import fits as run
    from ascendkit.emulator.findings.fits_source import of_source

    output, settings = settings_of(args.settings)
    if _is_source(args.subject):
        found = of_source(Path(args.subject).read_text())
    else:
        found = run(load(args.subject, settings), _options(args.subject))
    if output == "json":
        print(json.dumps([fit.to_json() for fit in found], indent=1))
    else:
        for fit in found:
            _table(fit)
    if any(fit.too_large for fit in found):
        return exits.FINDINGS
    known = found and all(fit.ok and (fit.memories or not fit.bound) for fit in found)
    return exits.CLEAN if known else exits.CANNOT_JUDGE


# ---- kernels -------------------------------------------------------------------------------------


def load(text: str, settings: dict[str, Any]) -> Any:
    """The prim_func that ``module:function`` makes of ``settings``.

    Raises:
        ValueError: no such module or function, or arguments it does not take.
    """
    from ascendkit.emulator.lowered import ascend_target

    factory = _factory(text)
    if hasattr(factory, "buffer_map"):
        return factory
    make = getattr(factory, "get_tir", factory)
    try:
        with ascend_target():
            kernel = make(**settings)
    except TypeError as error:
        raise ValueError(f"{text}: {error}") from error
    if not hasattr(kernel, "buffer_map"):
        raise bad_value(text, type(kernel).__name__, "a function that makes a TileLang prim_func")
    return kernel


def _factory(text: str) -> Any:
    from importlib import import_module

    module_name, colon, name = text.rpartition(":")
    if not colon or not module_name or not name:
        raise bad_value("kernel", text, "FILE.asc or module:function")
    if module_name.endswith(".py"):
        path = Path(module_name).resolve()
        sys.path.insert(0, str(path.parent))
        module_name = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{text}: {error}") from error
    if not hasattr(module, name):
        public = [n for n in dir(module) if not n.startswith("_")]
        raise unknown(f"function of {module_name}", name, public)
    return getattr(module, name)


def _options(text: str) -> dict[str, Any]:
    """Pass options of a ``@tilelang.jit`` function."""
    return dict(getattr(_factory(text), "pass_configs", None) or {})


def _is_source(text: str) -> bool:
    return ":" not in text or text.endswith((".asc", ".cpp"))


def _readable(text: str) -> bool:
    from ascendkit.emulator import source
    from ascendkit.emulator.errors import SourceError

    try:
        source.kernels(text)
    except SourceError:
        return False
    return True


def settings_of(texts: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """``output=`` and the arguments of a factory."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise bad_value("argument", text, "key=value")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    output = found.pop("output", "table")
    if output not in OUTPUTS:
        raise unknown("output", str(output), OUTPUTS)
    return output, found


def told(kernel: Any) -> int:
    """Print what the judges found in the last launch of a source's kernel; the exit code."""
    from ascendkit.emulator.findings.finding import Reader

    reader = Reader(kernel.text)
    return _print([reader.of_raw(f, kernel.regions) for f in kernel.findings], "table")


# ---- output --------------------------------------------------------------------------------------


def _result(result: Any, output: str) -> int:
    _print(result.findings, output)
    return exits.of_findings(result.findings, ended=result.run is not None)


def _print(findings: Sequence[Any], output: str) -> int:
    from ascendkit.cli import console
    from ascendkit.emulator.findings import render

    if output == "json":
        print(json.dumps([f.to_json() for f in findings], indent=1))
    elif output == "html":
        print(render.html(findings), end="")
    else:
        render.show(findings, console())
        print(render.summary(findings))
    return exits.of_findings(findings)


def _table(fit: Any) -> None:
    from ascendkit.cli import console, plain_table

    out = console()
    print(f"{fit.kernel}: {fit.verdict}")
    if fit.bound:
        print(fit.bound)
    if fit.reason:
        print(f"TileLang does not lower it: {fit.reason}")
    table = plain_table()
    for title in ("memory", "need B", "need bits", "at once B", "at line", "950 B", "A2/A3 B"):
        table.add_column(title, justify="left" if title in ("memory", "at line") else "right")
    for m in fit.memories:
        limits = [
            f"{'' if m.need <= fit.capacity[c][m.space] else 'OVER '}{fit.capacity[c][m.space]}"
            for c in ("950", "A2/A3")
        ]
        peak = f"{Path(m.peak.file).name}:{m.peak.line}" if m.peak else ""
        table.add_row(m.space, str(m.need), str(m.need * 8), str(m.live), peak, *limits)
    out.print(table)
    for m in fit.memories:
        for chip, why in m.over.items():
            print(f"  {m.space} on {chip}: {why}")
    for text in fit.overlaps:
        print(f"  {text}")
    if not fit.buffers:
        return
    table = plain_table()
    for title in ("buffer", "memory", "offset", "bytes", "versions", "in use", "at the peak"):
        right = title in ("offset", "bytes", "versions")
        table.add_column(title, justify="right" if right else "left")
    for b in sorted(fit.buffers, key=lambda b: (b.space, b.offset, b.name)):
        lines = "-".join(dict.fromkeys(str(o.line) for o in (b.first, b.last) if o))
        at_peak = any(b is one for m in fit.memories for one in m.at_peak)
        offset = str(b.offset) if b.offset >= 0 else "?"
        peak = "yes" if at_peak else ""
        table.add_row(b.name, b.space, offset, str(b.bytes), str(b.versions), lines, peak)
    out.print(table)
