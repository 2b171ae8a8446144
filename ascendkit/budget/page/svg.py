"""Small pieces of SVG: escaped text, shapes with titles, and scales."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from ascendkit.budget.report import duration

BOUNDS = ("cube", "vector", "hbm", "l2", "scaleup", "scaleout", "launch")
WORDS = {
    "cube": "matrix units", "vector": "vector units", "hbm": "device memory", "l2": "L2",
    "scaleup": "scale-up link", "scaleout": "scale-out link", "launch": "launch and latency",
}  # fmt: skip


def text_of(value: object) -> str:
    """Text safe inside HTML."""
    return escape(str(value), quote=True)


def color(bound: str) -> str:
    """The colour of a bound."""
    return f"var(--{bound})" if bound in BOUNDS else "var(--other)"


def svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    """A picture that scales with the page; ``label`` describes it to a screen reader."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{text_of(label)}">'
        f"{''.join(parts)}</svg>"
    )


def rect(x: float, y: float, w: float, h: float, fill: str, hint: str = "", radius: int = 2) -> str:
    """A box that tells ``hint`` on hovering."""
    tip = f"<title>{text_of(hint)}</title>" if hint else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.3):.1f}" height="{h:.1f}" rx="{radius}"'
        f' fill="{fill}">{tip}</rect>'
    )


def text(x: float, y: float, value: object, anchor: str = "start", soft: bool = False) -> str:
    """One line of text."""
    kind = ' class="soft"' if soft else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{text_of(value)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid", extra: str = "") -> str:
    """A straight line of a style class."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"{extra}/>'


def legend(names: Iterable[str]) -> str:
    """Colours of the bounds that occur."""
    used = [b for b in BOUNDS if b in set(names)]
    items = (f'<span><i style="background:{color(b)}"></i>{WORDS[b]}</span>' for b in used)
    return f'<div class="legend">{"".join(items)}</div>'


def at_tick(seconds: float) -> str:
    """A time on an axis."""
    return duration(seconds) if seconds else "0"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between two bounds."""
    span = high - low
    if span <= 0:
        return [low]
    raw = span / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * f for f in (1, 2, 5, 10) if unit * f >= raw)
    first = math.ceil(low / step) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]
