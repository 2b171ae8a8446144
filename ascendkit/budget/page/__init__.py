"""A budget as one self-contained HTML file: pictures in SVG, a table to sort, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence

from ascendkit.budget.page.bars import memory, waterfall
from ascendkit.budget.page.roofline import roofline
from ascendkit.budget.page.style import CSS, SCRIPT
from ascendkit.budget.page.svg import text_of
from ascendkit.budget.page.table import table
from ascendkit.budget.page.timeline import timeline
from ascendkit.budget.report import at_least, band, duration, fits, notes, staged, title, totals
from ascendkit.budget.step import Step

__all__ = ["page"]

MARKS = (
    ("M", "measured here"),
    ("P", "published"),
    ("E", "emulated"),
    ("T", "transferred from another chip or op"),
    ("A", "assumed, peak rate"),
)


def page(steps: Sequence[Step], acceptance: float | None, command: str) -> str:
    """The report of one plan on one or several devices."""
    first = steps[0]
    tabs = "".join(
        f'<button class="tab{" on" if i == 0 else ""}" data-panel="{i}">{text_of(s.device.key)}'
        "</button>"
        for i, s in enumerate(steps)
    )
    panels = "".join(_panel(i, s, acceptance) for i, s in enumerate(steps))
    said = "".join(f"<li>{text_of(n)}</li>" for n in notes(steps))
    marks = "".join(f"<li><b>{k}</b> {v}</li>" for k, v in MARKS)
    name = f"{first.model.key} {first.plan.phase}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text_of(name)}: budget</title><style>{CSS}</style></head><body><main>"
        f"<h1>{text_of(name)}</h1><p class=sub>{text_of(title(first))}</p>"
        f'<div class="cards">{"".join(_card(s, acceptance) for s in steps)}</div>'
        f'<nav class="tabs">{tabs if len(steps) > 1 else ""}</nav>{panels}'
        f"<section><h2>Origin of the figures</h2><ul class=marks>{marks}</ul></section>"
        f"<section><h2>Read with care</h2><ul>{said}</ul></section>"
        f"<footer><code>{text_of(command)}</code></footer>"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _card(step: Step, acceptance: float | None) -> str:
    most = "<= " if step.lower_bound else ""
    rows = [("tokens/s per rank", f"{most}{step.rate:.4g}")]
    if step.time is not None:
        rows.insert(0, ("p10 to p90", band(step.time)))
        shares = " ".join(f"{k} {v:.0%}" for k, v in step.time.shares.items())
        rows.append(("origin", shares))
    if staged(step):
        rows.append(("stage interval", duration(step.interval)))
    if acceptance is not None:
        rows.append((f"TPOT, {acceptance:g} accepted", duration(step.seconds / (1 + acceptance))))
    rows.append(("memory", f"{step.memory.total / 1e9:.3g} GB; fits: {fits(step)}"))
    claimed = step.time is None or step.time.claimed
    mark = "" if claimed else '<span class="no">not claimed</span>'
    body = "".join(f"<dt>{text_of(k)}</dt><dd>{text_of(v)}</dd>" for k, v in rows)
    return (
        f'<div class="card"><h3>{text_of(step.device.key)} {mark}</h3>'
        f'<p class="big">{text_of(at_least(step))}</p><dl>{body}</dl></div>'
    )


def _panel(i: int, step: Step, acceptance: float | None) -> str:
    sums = "".join(
        f"<tr><td>{text_of(k)}</td><td>{text_of(v)}</td></tr>"
        for k, v in totals(step, acceptance).items()
    )
    return (
        f'<div class="panel" data-index="{i}"{" hidden" if i else ""}>'
        f"<section><h2>From operators to the step</h2>{waterfall(step)}</section>"
        f"<section><h2>Roofline</h2>{roofline(step)}</section>"
        f"<section><h2>Timeline by resource</h2>{timeline(step)}</section>"
        f"<section><h2>Memory of the fullest rank</h2>{memory(step)}</section>"
        f"<section><h2>Operators</h2>{table(step)}</section>"
        "<section><h2>Totals</h2><div class=wide><table class=sums>"
        f"{sums}</table></div></section></div>"
    )
