"""Roofline: matrix work over bytes of device memory, against the roofs of the device."""

from __future__ import annotations

import math

from ascendkit.budget.page.svg import color, legend, line, svg, text, text_of
from ascendkit.budget.report import duration, human
from ascendkit.budget.roofline import runs_as
from ascendkit.budget.step import Line, Step

WIDTH, HEIGHT, LEFT, BOTTOM = 1040, 430, 88, 40


def roofline(step: Step) -> str:
    """Operators with matrix work as dots; area is time, colour is what binds."""
    memory = step.device.bytes_per_s("hbm")
    dots = [
        (ln, f / ln.bytes["hbm"], f / ln.seconds)
        for ln in step.lines
        if (f := _matrix(ln)) and ln.bytes["hbm"] and ln.seconds
    ]
    roofs = _roofs(step)
    if not dots or not roofs or memory is None:
        return '<p class="muted">No matrix work, or a rate of this device is unknown.</p>'
    x0 = min(d[1] for d in dots) / 2
    x1 = max(*(d[1] for d in dots), *(v / memory for v in roofs.values())) * 2
    y0, y1 = min(d[2] for d in dots) / 2, max(roofs.values()) * 1.6

    def x(v: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * math.log(v / x0) / math.log(x1 / x0)

    def y(v: float) -> float:
        return (HEIGHT - BOTTOM) * (1 - math.log(v / y0) / math.log(y1 / y0))

    parts = [*_grid(x0, x1, y0, y1, x, y)]
    for name, peak in roofs.items():
        corner = peak / memory
        parts.append(line(x(max(corner, x0)), y(peak), x(x1), y(peak), "axis"))
        parts.append(text(x(x1) - 4, y(peak) - 5, f"{name} {human(peak)}FLOP/s", "end", True))
    low = max(x0, y0 / memory)
    high = min(x1, max(roofs.values()) / memory)
    parts.append(line(x(low), y(low * memory), x(high), y(high * memory), "axis"))
    parts.append(text(x(low) + 8, y(low * memory) - 12, f"memory {human(memory)}B/s", soft=True))
    most = max(d[0].seconds for d in dots)
    named: list[tuple[float, float]] = []
    for ln, intensity, rate in sorted(dots, key=lambda d: -d[0].seconds):
        r = 3 + 15 * math.sqrt(ln.seconds / most)
        hint = (
            f"{ln.label}: {human(rate)}FLOP/s at {intensity:.3g} FLOP/B, {duration(ln.seconds)},"
            f" bound {ln.bound}, {ln.mark}"
        )
        parts.append(
            f'<circle cx="{x(intensity):.1f}" cy="{y(rate):.1f}" r="{r:.1f}"'
            f' fill="{color(ln.bound)}" fill-opacity="0.65" stroke="{color(ln.bound)}">'
            f"<title>{text_of(hint)}</title></circle>"
        )
        at = (x(intensity) + r + 3, y(rate) + 4)
        # A name that would run into another one is left to the hint of its dot.
        if all(abs(at[1] - b) > 13 or abs(at[0] - a) > 7 * len(ln.label) for a, b in named):
            named.append(at)
            parts.append(text(*at, ln.label[:26]))
    names = {d[0].bound for d in dots}
    picture = svg(WIDTH, HEIGHT, parts, "roofline with the operators on it")
    return legend(names) + f'<div class="wide">{picture}</div>'


def _matrix(ln: Line) -> float:
    return sum(v for k, v in ln.flops.items() if k.startswith("cube"))


def _roofs(step: Step) -> dict[str, float]:
    """Peak of every rate class that the step uses."""
    used = {k.partition(".")[2] for ln in step.lines for k in ln.flops if k.startswith("cube")}
    found: dict[str, float] = {}
    for dtype in sorted(used - {"fp32", "hf32"}):
        name = runs_as(step.device, dtype)
        peak = step.device.flops_per_s("cube", name)
        if peak is not None:
            found[name] = peak
    by_peak: dict[float, list[str]] = {}
    for name, peak in found.items():
        by_peak.setdefault(peak, []).append(name)
    return {", ".join(names): peak for peak, names in by_peak.items()}


def _grid(x0: float, x1: float, y0: float, y1: float, x: object, y: object) -> list[str]:
    assert callable(x) and callable(y)
    parts = []
    for e in range(math.ceil(math.log10(x0)), math.floor(math.log10(x1)) + 1):
        at = x(10.0**e)
        parts += [line(at, 0, at, HEIGHT - BOTTOM),
                  text(at, HEIGHT - BOTTOM + 16, f"{10.0**e:g}", "middle", True)]  # fmt: skip
    for e in range(math.ceil(math.log10(y0)), math.floor(math.log10(y1)) + 1):
        at = y(10.0**e)
        parts += [line(LEFT, at, WIDTH - 20, at),
                  text(LEFT - 6, at + 4, f"{human(10.0**e)}FLOP/s", "end", True)]  # fmt: skip
    parts.append(text(WIDTH / 2, HEIGHT - 6, "FLOP per byte of device memory", "middle", True))
    return parts
