"""Tables and JSON lines, for all commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ascendkit import cli


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers to the right."""
    from rich.table import Table

    t = Table(title=title, title_justify="left", title_style="bold")
    kept = [[str(cell) for cell in row] for row in rows]
    for i, column in enumerate(columns):
        numeric = all(_number(row[i]) for row in kept)
        t.add_column(column, justify="right" if numeric and kept else "left")
    for row in kept:
        t.add_row(*row)
    cli.console().print(t)


def lines(records: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    for record in records:
        print(json.dumps(dict(record), allow_nan=False))


def gib(num_bytes: float) -> str:
    """Bytes in GiB."""
    return f"{num_bytes / 2**30:.3f}"


def _number(text: str) -> bool:
    return text.replace(",", "").lstrip("+-").rstrip(" %")[:1].isdigit() or text in ("-", "")
