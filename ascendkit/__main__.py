"""``python -m ascendkit <command>``: the small commands, and a door to the large ones.

``doctor``, ``status`` and ``env`` live here. Every package below ``ascendkit`` that has a
``__main__`` is a command too: ``ascendkit budget model=v3`` is ``python -m ascendkit.budget
model=v3``.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path

from ascendkit import cli
from ascendkit.errors import unknown

SMALL = ("doctor", "env", "status")


def commands() -> tuple[str, ...]:
    """All commands, found by looking."""
    here = Path(__file__).parent
    return tuple(sorted({*SMALL, *(p.parent.name for p in here.glob("*/__main__.py"))}))


def main() -> None:
    """Run the command named first; 0 all well, 1 a finding, 2 usage error."""
    argv = sys.argv[1:]
    if not argv or argv[0] in cli.HELP:
        print(f"{(__doc__ or '').strip()}\n\ncommands: {', '.join(commands())}")
        raise SystemExit(0 if argv else cli.USAGE_ERROR)
    name, rest = argv[0], argv[1:]
    if name not in commands():
        cli.fail(str(unknown("command", name, commands())))
    sys.argv = [f"ascendkit {name}", *rest]
    if name in SMALL:
        # Imported inside run(): a broken installation is what doctor is asked about most.
        cli.run(lambda rest: importlib.import_module(f"ascendkit.doctor.{name}").main(rest))
    runpy.run_module(f"ascendkit.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
