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
    notes = tuple(
        f"{name} is set, but nothing reads it{f'; nearest: {near}' if near else ''}"
        for name, near in strange
    )
    show([Table("Variables", ("variable", "default", "now", "meaning"), rows, notes)], output)
    return 1 if strange else 0


def report(
    environ: Mapping[str, str],
) -> tuple[list[tuple[str, str, str, str]], list[tuple[str, str]]]:
    """Rows of the table, and (name, nearest known name or "") of each unknown one that is set."""
    known = {name.removeprefix(PREFIX): name for name in VARIABLES}
    rows = [(name, v.default, environ.get(name, "-"), v.meaning) for name, v in VARIABLES.items()]
    strange = [
        # Without what all names begin with, which would make any two of them near.
        (name, known.get(nearest(name.removeprefix(PREFIX), known), ""))
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in VARIABLES
    ]
    return rows, strange
