"""``python -m ascendkit.emulator check | fits | lint``: findings on a command line.

A kernel is a ``.asc`` file, or ``module:function`` (``file.py:function``) of a TileLang function
with the arguments of its factory as ``key=value``.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from ascendkit.emulator.findings import exits, loading, printing


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

    output, settings = loading.settings_of(args.settings)
    options = {"cores": args.cores, "replays": args.replays, "timeout_s": args.timeout}
    if loading.is_source(args.subject) and not loading.readable(text := loading.read(args.subject)):
        return printing.result(run(text, grid=0), output)
    kernel, values, grid = loading.launchable(args, settings)
    result = run(kernel, *values, grid=grid, **options)
    if result.run is not None and not getattr(kernel, "last_blocks", grid):
        raise ValueError(f"{args.subject}: {loading.NO_BLOCK}")
    if result.run is not None and output == "table":
        print(f"{result.run.kernel}: {result.run.grid} blocks, {result.run.seconds:.2f} s here")
    return printing.result(result, output)


def lint(args: Any) -> int:
    """Static findings; their exit code."""
    from ascendkit.emulator.findings.lint import lint as run

    output, settings = loading.settings_of(args.settings)
    if loading.is_source(args.subject):
        return printing.show(run(loading.read(args.subject)), output)
    kernel, configs = loading.load(args.subject, settings)
    with loading.users_code(args.subject):
        found = [*run(kernel, configs), *_unused(args.subject, settings, kernel, configs)]
    return printing.show(found, output)


def _unused(subject: str, settings: dict[str, Any], kernel: Any, configs: Any) -> list[Any]:
    """Arguments of the factory without which the same text is generated."""
    from ascendkit.emulator.findings import lint as module
    from ascendkit.emulator.findings.options import settings_without_effect
    from ascendkit.emulator.lowered import lower

    factory = loading.factory_of(subject)
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

    output, settings = loading.settings_of(args.settings)
    if loading.is_source(args.subject):
        found = of_source(loading.read(args.subject))
    else:
        kernel, configs = loading.load(args.subject, settings)
        with loading.users_code(args.subject):
            found = run(kernel, configs)
    if output == "json":
        print(json.dumps([fit.to_json() for fit in found], indent=1))
    else:
        for fit in found:
            printing.capacity(fit)
    if any(fit.too_large for fit in found):
        return exits.FINDINGS
    known = found and all(fit.ok and (fit.memories or not fit.bound) for fit in found)
    return exits.CLEAN if known else exits.CANNOT_JUDGE
