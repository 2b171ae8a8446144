"""Two steps side by side: where the milliseconds go when one becomes the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendkit.budget.report import title
from ascendkit.budget.step import Step
from ascendkit.cli import plain_table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Bar:
    """One operator: seconds in the first step, in the second, and the difference."""

    label: str
    before: float
    after: float

    @property
    def delta(self) -> float:
        """Seconds the second step takes longer."""
        return self.after - self.before


def waterfall(a: Step, b: Step) -> list[Bar]:
    """Bars that lead from the time of ``a`` to that of ``b``, largest change first.

    Operators are compared in series; the last bar is what overlap, pipeline and gaps change.
    """
    first = {line.label: line.seconds for line in a.lines}
    second = {line.label: line.seconds for line in b.lines}
    labels = dict.fromkeys([*first, *second])
    bars = [Bar(n, first.get(n, 0.0), second.get(n, 0.0)) for n in labels]
    bars.sort(key=lambda bar: (-abs(bar.delta), bar.label))
    rest = Bar("overlap, pipeline, gaps", a.seconds - a.serial, b.seconds - b.serial)
    return [*bars, rest]


def print_diff(console: Console, a: Step, b: Step, names: tuple[str, str]) -> None:
    """A table of the bars, in milliseconds."""
    table = plain_table()
    table.add_column("operator", no_wrap=True)
    for name in (*names, "change", "sum so far"):
        table.add_column(name, justify="right", no_wrap=True)
    at = a.seconds
    table.add_row("step", _ms(a.seconds), "", "", _ms(at), style="bold")
    for bar in waterfall(a, b):
        at += bar.delta
        if abs(bar.delta) >= 1e-9:
            table.add_row(
                bar.label, _ms(bar.before), _ms(bar.after), f"{bar.delta * 1e3:+.3f}", _ms(at)
            )
    change = f"{(b.seconds - a.seconds) * 1e3:+.3f}"
    table.add_row("step", _ms(a.seconds), _ms(b.seconds), change, _ms(b.seconds), style="bold")
    for name, step in zip(names, (a, b)):
        console.print(f"{name}: {title(step)}")
    console.print("milliseconds a step on one rank", style="bold")
    console.print(table)
    for step, name in zip((a, b), names, strict=True):
        if step.lower_bound:
            console.print(f"note: {name}: no rate for {', '.join(step.unknown)}; a lower bound")
    if a.seconds:
        console.print(f"ratio {b.seconds / a.seconds:.3f}")


def as_json(a: Step, b: Step, names: tuple[str, str]) -> dict[str, Any]:
    """The same bars as plain containers, in seconds."""
    bars = [
        {"label": x.label, "before_s": x.before, "after_s": x.after, "delta_s": x.delta}
        for x in waterfall(a, b)
    ]
    return {
        "schema": "ascendkit.budget.diff.v1",
        "names": list(names),
        "lower_bound": [a.lower_bound, b.lower_bound],
        "before_s": a.seconds,
        "after_s": b.seconds,
        "bars": bars,
    }


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
