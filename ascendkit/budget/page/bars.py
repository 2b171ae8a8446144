"""Waterfall from operators to the step, and memory as one bar."""

from __future__ import annotations

from ascendkit.budget.page.svg import color, legend, line, rect, svg, text, text_of, ticks
from ascendkit.budget.report import duration, human
from ascendkit.budget.step import Step

MOST = 18
ROW, LEFT, WIDTH = 24, 210, 1040
PALETTE = (
    "var(--cube)", "var(--vector)", "var(--hbm)", "var(--l2)", "var(--scaleup)", "var(--scaleout)",
    "var(--less)", "var(--launch)", "var(--other)",
)  # fmt: skip


def waterfall(step: Step) -> str:
    """Operators in series, largest first, then what overlap takes away and gaps add."""
    bars: list[tuple[str, float, str]] = [
        (f"{line_.label}", line_.seconds, line_.bound) for line_ in step.lines
    ]
    if len(bars) > MOST:
        rest = bars[MOST - 1 :]
        bars = [*bars[: MOST - 1], (f"{len(rest)} more", sum(b[1] for b in rest), "")]
    change = step.seconds - step.serial
    bars.append(("overlap, pipeline, gaps", change, "less" if change < 0 else ""))
    top = max(step.serial, step.seconds)
    scale = (WIDTH - LEFT - 90) / top
    height = (len(bars) + 1) * ROW + 30
    parts = []
    for t in ticks(0, top):
        x = LEFT + t * scale
        parts += [
            line(x, 0, x, height - 26),
            text(x, height - 8, duration(t) if t else "0", "middle", True),
        ]
    at = 0.0
    for i, (name, seconds, bound) in enumerate(bars):
        y = i * ROW + 3
        x = LEFT + min(at, at + seconds) * scale
        fill = "var(--less)" if bound == "less" else color(bound)
        hint = f"{name}: {duration(abs(seconds))}, bound by {bound or 'several'}"
        parts.append(rect(x, y, abs(seconds) * scale, ROW - 7, fill, hint))
        parts.append(text(LEFT - 8, y + 13, name[:32], "end"))
        share = f"{'-' if seconds < 0 else ''}{duration(abs(seconds))} {abs(seconds) / top:.0%}"
        parts.append(text(LEFT + max(at, at + seconds) * scale + 6, y + 13, share, soft=True))
        at += seconds
    y = len(bars) * ROW + 3
    parts.append(rect(LEFT, y, step.seconds * scale, ROW - 7, "var(--ink)", "the step"))
    parts.append(text(LEFT - 8, y + 13, "step", "end"))
    parts.append(text(LEFT + step.seconds * scale + 6, y + 13, duration(step.seconds)))
    used = {line_.bound for line_ in step.lines}
    label = f"waterfall of operator times that lead to a step of {duration(step.seconds)}"
    return legend(used) + f'<div class="wide">{svg(WIDTH, height, parts, label)}</div>'


def memory(step: Step) -> str:
    """Every kind of memory, and how much the device has."""
    held = step.memory
    kinds = [(f"weights: {k}", v) for k, v in held.weights.items()]
    kinds += [("gradients", held.gradients), ("optimizer states", held.optimizer)]
    kinds += list(held.buffers.items())
    kinds = sorted(((k, v) for k, v in kinds if v), key=lambda kv: -kv[1])
    have = step.device.hbm_bytes
    top = max(held.total, have or 0.0) * 1.02
    scale, at = WIDTH / top, 0.0
    parts, keys = [], []
    for i, (name, size) in enumerate(kinds):
        fill = PALETTE[i % len(PALETTE)]
        shade = 1 - 0.35 * (i // len(PALETTE)) if i < 3 * len(PALETTE) else 0.3
        box = rect(at * scale, 6, size * scale, 34, fill, f"{name}: {human(size)}B", 0)
        parts.append(box.replace("<rect", f'<rect fill-opacity="{shade:.2f}"', 1))
        keys.append(
            f'<span><i style="background:{fill};opacity:{shade:.2f}"></i>{text_of(name)}'
            f" {human(size)}B</span>"
        )
        at += size
    if have:
        x = have * scale
        parts += [line(x, 0, x, 46, "axis", ' stroke-width="2"'),
                  text(x - 4, 60, f"{human(have)}B in the device", "end", True)]  # fmt: skip
    parts.append(text(0, 60, f"{human(held.total)}B used"))
    label = f"memory: {human(held.total)}B"
    picture = svg(WIDTH, 66, parts, label)
    return f'<div class="wide">{picture}</div><div class="legend">{"".join(keys)}</div>'
