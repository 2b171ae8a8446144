"""The model beside the published tables as one HTML file that loads nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ascendkit.budget.page.style import CSS, SCRIPT
from ascendkit.budget.page.svg import line, svg, text, text_of, ticks

if TYPE_CHECKING:
    from ep_comm.model.predict import Held

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BELOW = 640, 240, 56, 16, 14, 40
COLUMNS = ("machine", "part", "EP", "published", "model", "error", "left out", "unit", "note")
READ = (
    "filled: published; hollow: model. GB/s are logical, rows of the own rank or node counted.",
    "left out: error of a point by constants fitted without it; empty where it sets none.",
    "Constants are fitted on these tables: the error is that of a fit, the left-out one is honest.",
)


def page(found: Sequence[Held], origins: Sequence[str], command: str) -> str:
    """Pictures a machine and part, a table to sort, and where the constants come from."""
    pictures = []
    groups: dict[str, list[Held]] = {}
    for h in found:
        groups.setdefault(f"{h.point.machine}, {h.point.part}", []).append(h)
    for name, some in groups.items():
        pictures.append(f"<section><h2>{text_of(name)}</h2>{_picture(some)}</section>")
    head = "".join(f"<th>{c}</th>" for c in COLUMNS)
    rows = "".join(_row(h) for h in found)
    said = "".join(f"<li>{text_of(s)}</li>" for s in (*READ, *origins))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>ep_comm: published and model</title><style>{CSS}</style></head><body><main>"
        "<h1>Expert-parallel communication</h1><p class=sub>published figures beside the model</p>"
        f'{"".join(pictures)}<section><h2>All points</h2><div class="wide"><table class="sort">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
        f"<section><h2>Read with care</h2><ul>{said}</ul></section>"
        f"<footer><code>{text_of(command)}</code></footer></main><script>{SCRIPT}</script>"
        "</body></html>\n"
    )


def unit(h: Held) -> str:
    """Of a point."""
    return "us" if h.point.low_latency else "GB/s"


def value(h: Held) -> float:
    """Published, in its unit."""
    return float(h.point.us if h.point.low_latency else h.point.gbs)


def _picture(some: list[Held]) -> str:
    ranks = [h.point.ranks for h in some]
    low, high = math.log2(min(ranks)) - 0.3, math.log2(max(ranks)) + 0.3
    top = 1.15 * max(max(value(h), h.predicted) for h in some)

    def at(h: Held, y: float) -> tuple[float, float]:
        share = (math.log2(h.point.ranks) - low) / (high - low)
        down = (HEIGHT - BELOW - TOP) * (1 - y / top)
        return LEFT + share * (WIDTH - LEFT - RIGHT), TOP + down

    floor = HEIGHT - BELOW
    parts = [line(LEFT, floor, WIDTH - RIGHT, floor, "axis")]
    for tick in ticks(0, top, 4):
        y = TOP + (floor - TOP) * (1 - tick / top)
        parts += [line(LEFT, y, WIDTH - RIGHT, y), text(LEFT - 6, y + 4, f"{tick:g}", "end", True)]
    for n, h in {h.point.ranks: h for h in some}.items():
        parts.append(text(at(h, 0)[0], floor + 16, f"EP{n}", "middle", True))
    parts.append(text(LEFT, HEIGHT - 6, unit(some[0]), "start", True))
    for h in some:
        hint = (
            f"EP{h.point.ranks}: published {value(h):.1f}, model {h.predicted:.1f} ({h.error:+.1%})"
        )
        for y, fill in ((value(h), "var(--accent)"), (h.predicted, "none")):
            x, down = at(h, y)
            parts.append(
                f'<circle cx="{x:.1f}" cy="{down:.1f}" r="6" fill="{fill}" stroke="var(--scaleup)"'
                f' stroke-width="2"><title>{text_of(hint)}</title></circle>'
            )
    label = f"{some[0].point.machine} {some[0].point.part}: published and model by ranks"
    return f'<div class="wide">{svg(WIDTH, HEIGHT, parts, label)}</div>'


def _row(h: Held) -> str:
    p = h.point
    left = "" if h.left_out is None else f"{h.left_out:+.1%}"
    shown = (p.machine, p.part, p.ranks, f"{value(h):.1f}", f"{h.predicted:.1f}",
             f"{h.error:+.1%}", left, unit(h), p.note)  # fmt: skip
    sort = (None, None, p.ranks, value(h), h.predicted, h.error, h.left_out, None, None)
    cells = (
        f"<td>{text_of(s)}</td>" if v is None else f'<td data-v="{v:.6g}">{text_of(s)}</td>'
        for s, v in zip(shown, sort, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
