"""When each resource works: kernels of one run of every segment, and the pipeline in training."""

from __future__ import annotations

from ascendkit.budget.overlap.fluid import Task, run
from ascendkit.budget.overlap.pipeline import Bar, Run
from ascendkit.budget.page.svg import at_tick, line, rect, svg, text, text_of, ticks
from ascendkit.budget.report import duration
from ascendkit.budget.step import Step
from ascendkit.budget.trace import lane

WIDTH, LEFT, LANE = 1040, 90, 26
FILLS = {
    "compute": "var(--cube)", "vector": "var(--vector)", "scale-up": "var(--scaleup)",
    "scale-out": "var(--scaleout)",
}  # fmt: skip
KINDS = {
    "F": ("forward", "var(--cube)"), "B": ("backward", "var(--hbm)"),
    "I": ("backward, inputs", "var(--vector)"), "W": ("weight gradients", "var(--l2)"),
    "FB": ("forward and backward", "var(--scaleup)"),
}  # fmt: skip


def timeline(step: Step) -> str:
    """Gantt charts; without a schedule (peak mode) there is nothing to draw."""
    if step.time is None:
        return '<p class="muted">time=peak puts operators in series; there is no schedule.</p>'
    parts = [p for p in step.time.parts if p.tasks]
    shown = sorted(parts, key=lambda p: -p.seconds)[:3]
    out = []
    for part in parts:
        if part in shown:
            out.append(f"<p class=muted>{text_of(part.name)}: one run, {_share(part, step)}</p>")
            out.append(_gantt(list(part.tasks)))
    if step.time.pipeline is not None and step.plan.pp > 1:
        pipe = step.time.pipeline
        out.append(
            f"<p class=muted>pipeline: {step.plan.schedule}, {step.plan.micro_batches}"
            f" micro-batches, {duration(pipe.seconds)}, busiest rank idle"
            f" {duration(pipe.bubble)}</p>"
        )
        out.append(_pipeline(pipe, step.plan.pp))
    return "".join(out)


def _share(part: object, step: Step) -> str:
    seconds = getattr(part, "seconds", 0.0)
    return f"{duration(seconds)} of the step ({seconds / step.seconds:.0%})"


def _gantt(tasks: list[Task]) -> str:
    end = run(tasks)
    lanes = [n for n in FILLS if any(lane(t) == n for t in tasks)]
    rows = {n: _packed([t for t in tasks if lane(t) == n]) for n in lanes}
    height = sum(len(r) for r in rows.values()) * LANE + 26
    scale = (WIDTH - LEFT - 10) / end
    parts, y = [], 0
    for t in ticks(0, end):
        x = LEFT + t * scale
        parts += [
            line(x, 0, x, height - 22),
            text(x, height - 6, at_tick(t), "middle", True),
        ]
    for name in lanes:
        parts.append(text(LEFT - 8, y + 17, name, "end"))
        for row in rows[name]:
            for task in row:
                w = (task.end - task.start) * scale
                hint = f"{task.name}: {duration(task.end - task.start)}"
                x = LEFT + task.start * scale
                parts.append(rect(x, y + 3, w - 0.5, LANE - 6, FILLS[name], hint))
                if w > 7 * len(task.name):
                    parts.append(
                        f'<text x="{x + 4:.1f}" y="{y + 17}" style="fill:var(--paper);'
                        f'font-size:11px">{text_of(task.name)}</text>'
                    )
            y += LANE
    return f'<div class="wide">{svg(WIDTH, height, parts, "kernels by resource over time")}</div>'


def _packed(tasks: list[Task]) -> list[list[Task]]:
    """Tasks that overlap in time go to different rows."""
    rows: list[list[Task]] = []
    for task in sorted(tasks, key=lambda t: (t.start, t.end)):
        for row in rows:
            if row[-1].end <= task.start + 1e-12:
                row.append(task)
                break
        else:
            rows.append([task])
    return rows


def _pipeline(pipe: Run, ranks: int) -> str:
    """One path for every kind of slot keeps thousands of bars small."""
    h = max(min(22, 360 // ranks), 4)
    scale = (WIDTH - LEFT - 10) / pipe.seconds
    paths: dict[str, list[str]] = {}
    for bar in pipe.bars:
        x, w = LEFT + bar.start * scale, (bar.end - bar.start) * scale
        paths.setdefault(_kind(bar), []).append(
            f"M{x:.1f} {bar.rank * h + 1}h{max(w - 0.2, 0.2):.1f}v{h - 2}h-{max(w - 0.2, 0.2):.1f}z"
        )
    height = ranks * h + 24
    parts = [
        f'<path d="{"".join(d)}" fill="{KINDS[k][1]}"><title>{KINDS[k][0]}</title></path>'
        for k, d in paths.items()
    ]
    parts += [
        text(LEFT - 8, r * h + h - 4, f"rank {r}", "end", True)
        for r in range(0, ranks, max(1, -(-14 // h)))
    ]
    for t in ticks(0, pipe.seconds):
        parts.append(text(LEFT + t * scale, height - 6, at_tick(t), "middle", True))
    keys = "".join(
        f'<span><i style="background:{KINDS[k][1]}"></i>{KINDS[k][0]}</span>' for k in paths
    )
    picture = svg(WIDTH, height, parts, "pipeline ranks over time")
    return f'<div class="legend">{keys}</div><div class="wide">{picture}</div>'


def _kind(bar: Bar) -> str:
    return "FB" if len(bar.slot) == 2 else bar.slot[0].kind
