"""``python -m ascendkit.emulator``: run and check kernels, write generated pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.findings import command, exits, loading, printing, tools

EXAMPLE = """examples:
  python -m ascendkit.emulator run add.asc --grid 4 \\
      --arg A=float32[4096]=randn --arg B=float32[4096]=randn --arg C=float32[4096]=zeros
  python -m ascendkit.emulator check add.asc output=json --grid 4 --arg A=float32[4096]=randn ...
  python -m ascendkit.emulator fits examples.ascend_scale:scale rows=64 width=512 cores=8
  python -m ascendkit.emulator lint examples.ascend_scale:scale rows=64 width=512 cores=8
  python -m ascendkit.emulator source examples.ascend_scale:scale rows=64 width=512 cores=8
  python -m ascendkit.emulator pages          write the generated pages
  python -m ascendkit.emulator names          compare the table with what TileLang can emit
  python -m ascendkit.emulator demo           two kernels, and what a mistake looks like
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m ascendkit.emulator",
        description="An Ascend 950 on this CPU.",
        epilog=f"{EXAMPLE}\n{exits.HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="launch one kernel of a .asc file")
    run.add_argument("file", help="AscendC as TileLang generates it")
    run.add_argument("--grid", type=int, help="blocks to launch (required)")
    run.add_argument("--kernel", help="which kernel, if the file has several")
    run.add_argument("--cores", type=int, default=32, help="AI cores of the chip (default 32)")
    run.add_argument("--threads", type=int, default=0, help="host threads (default: CPUs)")
    run.add_argument("--replay", type=int, default=0, help="seed of an adversarial legal order")
    run.add_argument("--timeout", type=float, default=60, help="seconds (default 60)")
    run.add_argument("--seed", type=int, default=0, help="seed of randn and randint")
    run.add_argument("--save", type=Path, help="folder for the arguments after the run, as .npy")
    run.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="[NAME=]VALUE",
        help="in kernel order or by name: a number, or dtype[shape]=zeros|ones|randn|arange|"
        "randint|FILE.npy",
    )
    commands.add_parser("pages", help="write the generated pages under docs/, and PROVENANCE.md")
    commands.add_parser("names", help="names TileLang can emit that the emulator does not know")
    commands.add_parser("demo", help="two kernels, and what a mistake looks like")
    bench = commands.add_parser("bench", help="speed of the emulator on this host")
    bench.add_argument("--out", type=Path, help="append the figures to this JSON-lines file")
    command.add(commands)
    tools.add(commands)
    args, rest = parser.parse_known_args(argv)
    if args.command == "run" and not loading.is_source(args.file):
        parser.error(f"run takes a .asc file, got {args.file!r}; of module:function use check")
    # argparse takes positional arguments in one run only; key=value may stand anywhere.
    settings = [text for text in rest if "=" in text and not text.startswith("-")]
    if settings != rest or (rest and not hasattr(args, "settings")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if settings:
        args.settings = [*args.settings, *settings]
    todo = {"run": _run, "pages": _pages, "names": _names, "demo": _demo, "bench": _bench}
    todo |= {"check": command.check, "fits": command.fits, "lint": command.lint}
    todo |= {"source": tools.source, "advise": tools.advise}
    todo |= {"replay": tools.replay, "mutate": tools.mutate}
    try:
        return todo[args.command](args)
    except EmulatorError as error:
        print(f"error: {error}", file=sys.stderr)
        return exits.of_error(error)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return exits.CANNOT_JUDGE


def _run(args: Any) -> int:
    import torch

    from ascendkit.emulator.argument_text import parse
    from ascendkit.emulator.kernel import EmulatedKernel

    torch.manual_seed(args.seed)
    kernel = EmulatedKernel(loading.read(args.file), args.kernel)
    values = parse(args.arg, kernel.kernel.parameters)
    grid = loading.blocks(args.grid)
    seconds = kernel.launch(
        values,
        grid=grid,
        cores=args.cores,
        threads=args.threads,
        replay=args.replay,
        timeout_s=args.timeout,
    )
    print(f"{kernel.kernel.name}: {grid} blocks, {seconds * 1e3:.2f} ms on this host")
    for parameter, value in zip(kernel.kernel.parameters, values):
        if not isinstance(value, torch.Tensor):
            continue
        numbers = value.double().flatten()
        head = ", ".join(f"{v:.6g}" for v in numbers[:4].tolist())
        print(
            f"  {parameter.name}: {value.dtype} {tuple(value.shape)} "
            f"sum {numbers.sum().item():.9g}  [{head}, ...]"
        )
        if args.save:
            import numpy

            args.save.mkdir(parents=True, exist_ok=True)
            numpy.save(args.save / f"{parameter.name}.npy", value.float().numpy())
    return printing.told(kernel) if kernel.findings else 0


def _pages(args: Any) -> int:
    from ascendkit.emulator import pages

    for path, text in pages.files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


def _names(args: Any) -> int:
    from ascendkit.emulator import emittable, instructions

    names = emittable.all_names()
    unknown = sorted(names - instructions.symbols())
    print(f"TileLang can emit {len(names)} names; unknown to the emulator: {len(unknown)}")
    for name in unknown:
        print(f"  {name}")
    return 1 if unknown else 0


def _demo(args: Any) -> int:
    from ascendkit.emulator import demo

    return demo.main()


def _bench(args: Any) -> int:
    from ascendkit.emulator import bench

    return bench.main(args.out)


if __name__ == "__main__":
    raise SystemExit(main())
