"""``python -m ascendkit.emulator source | advise | replay | mutate``: what a kernel's text is, what
synchronisation it could do without, which legal order breaks it, and who notices when it is wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from ascendkit.emulator.findings import command, exits, loading
from ascendkit.errors import bad_value


def add(commands: Any) -> None:
    """Add the commands to the parser of ``python -m ascendkit.emulator``."""
    command.subject(commands.add_parser("source", help="the AscendC text of a TileLang function"))
    advise = commands.add_parser("advise", help="synchronisation that nothing in a launch needs")
    replay = commands.add_parser("replay", help="look for a legal order that changes the outputs")
    replay.add_argument("--seeds", type=int, default=100, help="orders to try (default 100)")
    files = replay.add_mutually_exclusive_group()
    files.add_argument("--save", type=Path, help="keep the order that was found in this file")
    files.add_argument("--schedule", type=Path, help="repeat the order of this file instead")
    mutate = commands.add_parser("mutate", help="each synchronisation wrong once: who notices")
    for parser in (advise, replay, mutate):
        command.subject(parser)
        command.launch(parser)


def source(args: Any) -> int:
    """Print the generated text."""
    from ascendkit.emulator.lowered import lower

    _, settings = loading.settings_of(args.settings)
    if loading.is_source(args.subject):
        wanted = "module:function: of a file, the text is the file"
        raise bad_value("source", args.subject, wanted)
    function, configs = loading.load(args.subject, settings)
    with loading.users_code(args.subject):
        text = lower(function, configs)["source"]
    print(text, end="")
    return exits.CLEAN


def advise(args: Any) -> int:
    """Print what could go; the exit code says whether anything can."""
    from ascendkit.emulator import advisor

    one = _repeated(args)
    found = advisor.advise(one)
    _ran(one)
    print(advisor.report(one.text, found))
    return exits.FINDINGS if found else exits.CLEAN


def replay(args: Any) -> int:
    """Search for an order, or repeat one."""
    from ascendkit.emulator import replay as module

    one = _repeated(args)
    if args.schedule is None:
        found = module.search(one, seeds=args.seeds)
        _ran(one)
        if found is None:
            print(f"{args.seeds} legal orders leave the same bytes")
            return exits.CLEAN
        print(f"seed {found.seed}: {found.effect}")
        if args.save:
            found.save(args.save)
            print(args.save)
        return exits.FINDINGS
    wanted = one.launch()
    _ran(one)
    effect = module.effect(wanted, lambda: one.launch(schedule=args.schedule))
    print(f"{args.schedule}: {effect or 'the bytes of program order'}")
    return exits.FINDINGS if effect else exits.CLEAN


def mutate(args: Any) -> int:
    """Run each mutant once with judges, and list those that nobody reports."""
    from ascendkit.emulator import EmulatorError, mutants, records

    one = _repeated(args)
    one.launch(check=True)
    _ran(one)
    known = {f.code for f in one.findings}
    if any(not code.startswith("AK-ADVICE") for code in known):
        raise ValueError(f"kernel: got findings ({', '.join(sorted(known))}), wanted none")
    records.read()
    one.launch(trace=2)
    said: Counter[str] = Counter()
    silent = []
    found = mutants.synchronisation(records.read())
    for mutant in found:
        try:
            one.launch(check=True, mutate=[mutant])
            codes = {f.code for f in one.findings}
        except EmulatorError as error:
            codes = {error.code}
        said.update(codes)
        if not codes:
            silent.append(mutant)
    one.restore()
    print(f"{len(found)} mutants of synchronisation, {len(found) - len(silent)} reported")
    for code, count in said.most_common():
        print(f"  {code}  {count}")
    if silent:
        print("not reported (most change nothing: the order is the same without them):")
    for mutant in silent:
        print(f"  {mutant}")
    return exits.CLEAN


def _ran(one: Any) -> None:
    if not one.blocks:
        raise ValueError(f"kernel: {loading.NO_BLOCK}")


def _repeated(args: argparse.Namespace) -> Any:
    from ascendkit.emulator.repeat import Repeated

    output, settings = loading.settings_of(args.settings)
    if output != "table":
        raise ValueError(f"output: got {output}, wanted table: {args.command} prints text")
    kernel, values, grid = loading.launchable(args, settings)
    return Repeated(kernel, values, grid=grid, cores=args.cores)
