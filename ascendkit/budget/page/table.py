"""The operators as a table that sorts by any column."""

from __future__ import annotations

from ascendkit.budget.page.svg import text_of
from ascendkit.budget.report import duration, human
from ascendkit.budget.step import Step

COLUMNS = (
    "operator", "calls", "FLOP", "HBM bytes", "L2 bytes", "link bytes", "at peak", "time", "share",
    "bound", "origin",
)  # fmt: skip
HINTS = {"share": ' title="of all operators in series, not of the step: overlaps make it shorter"'}


def table(step: Step) -> str:
    """One row an operator line; numbers keep their value in ``data-v`` for sorting."""
    rows = []
    for ln in step.lines:
        flops, link = sum(ln.flops.values()), sum(ln.link.values())
        peak = max(ln.resource_s.values(), default=0.0)
        cells = [
            f"<td>{text_of(ln.label)}</td>",
            _cell(ln.calls, f"{ln.calls:.4g}"),
            _cell(flops, human(flops)),
            _cell(ln.bytes["hbm"], human(ln.bytes["hbm"])),
            _cell(ln.bytes["l2"], human(ln.bytes["l2"])),
            _cell(link, human(link)),
            _cell(peak, duration(peak)),
            _cell(ln.seconds, f"{'>= ' if ln.missing else ''}{duration(ln.seconds)}"),
            _cell(ln.seconds, f"{ln.seconds / step.serial:.1%}"),
            f"<td>{text_of(ln.bound)}</td>",
            f"<td>{text_of(ln.mark or 'peak')}</td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th{HINTS.get(c, '')}>{c}</th>" for c in COLUMNS)
    return (
        f'<div class="wide"><table class="sort"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(value: float, shown: str) -> str:
    return f'<td data-v="{value:.6g}">{text_of(shown)}</td>'
