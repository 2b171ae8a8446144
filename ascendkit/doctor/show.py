"""Plain tables of text, shown on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """A titled table; every cell is text, so each output shows the same thing."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """Name of the table in JSON."""
        return self.title.lower().replace(" ", "_").replace("-", "_")

    def records(self) -> list[dict[str, str]]:
        """One mapping a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def show(tables: Sequence[Table], output: str) -> None:
    """Print ``tables`` as ``table``, ``json`` or ``markdown``."""
    if output == "json":
        print(json.dumps({t.key: t.records() for t in tables}, indent=1, ensure_ascii=False))
    elif output == "markdown":
        print(markdown(tables), end="")
    else:
        _terminal(tables)


def markdown(tables: Sequence[Table]) -> str:
    """The tables as Markdown, one blank line between blocks."""
    blocks = []
    for table in tables:
        head = [table.columns, tuple("---" for _ in table.columns)]
        lines = [f"| {' | '.join(map(_escaped, row))} |" for row in (*head, *table.rows)]
        blocks += [f"## {table.title}", "\n".join(lines)]
        if table.notes:
            blocks.append("\n".join(f"- {note}" for note in table.notes))
    return "\n\n".join(blocks) + "\n"


def _terminal(tables: Sequence[Table]) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    from ascendkit.cli import console

    out = console()
    # Lines drawn around cells are noise for grep and for a reader of a log.
    frame = box.SIMPLE_HEAD if out.is_terminal else None
    for table in tables:
        shown = RichTable(
            title=table.title, title_justify="left", title_style="bold", box=frame, pad_edge=False
        )
        for column in table.columns:
            shown.add_column(column, overflow="fold")
        for row in table.rows:
            shown.add_row(*map(Text, row))
        out.print(shown)
        for note in table.notes:
            out.print(Text(f"  {note}"))
        out.print()


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
