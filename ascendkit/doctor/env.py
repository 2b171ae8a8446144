"""``env``: every variable that steers the suite, with its value now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ascendkit import cli
from ascendkit.doctor.show import Table, show
from ascendkit.doctor.variables import PREFIX, VARIABLES
from ascendkit.errors import nearest


def main(argv: Sequence[str]) -> int:
    """Print the variables; 1 where one is set that nothing reads, which is most often a typo."""
    output = cli.compose("env", argv)["output"]
    rows, strange = report(os.environ)
    notes = tuple(f"{name} is set, but nothing reads it; nearest: {near}" for name, near in strange)
    show([Table("Variables", ("variable", "default", "now", "meaning"), rows, notes)], output)
    return 1 if strange else 0


def report(
    environ: Mapping[str, str],
) -> tuple[list[tuple[str, str, str, str]], list[tuple[str, str]]]:
    """Rows of the table, and (name, nearest known name) of each unknown variable that is set."""
    rows = [(name, v.default, environ.get(name, "-"), v.meaning) for name, v in VARIABLES.items()]
    strange = [
        (name, nearest(name, VARIABLES))
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in VARIABLES
    ]
    return rows, strange
