"""A budget as a terminal table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ascendkit.budget.parts import StepTime
from ascendkit.budget.roofline import RESOURCES
from ascendkit.budget.step import Line, Step
from ascendkit.cli import plain_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def human(value: float | None, digits: int = 3) -> str:
    """``value`` with an SI prefix; "unknown" for None, "-" for nothing."""
    if value is None:
        return "unknown"
    if not value:
        return "-"
    scale, prefix = next((u for u in _UNITS if abs(value) >= u[0]), (1.0, ""))
    return f"{value / scale:.{digits}g}{prefix}" if value / scale < 1e3 else f"{value:.0f}"


def duration(seconds: float) -> str:
    """Seconds as s, ms or us with three digits."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1e3 else f"{seconds:.0f} s"
    return "-" if not seconds else f"{seconds * 1e6:.2g} us"


PEAK_NOTE = (
    "times are bounds: each operator at the device's peak rates, one after another, no launch gaps,"
    " no overlap"
)
CURVES_NOTE = (
    "operator times are measured kernels in series; the step has overlaps, pipeline and gaps;"
    " marks: M measured here, P published, E emulated, T transferred, A assumed"
)


def print_steps(
    console: Console, steps: Sequence[Step], acceptance: float | None = None, what_if: str = ""
) -> None:
    """Operators and totals of one plan on one or several devices."""
    first = steps[0]
    console.print(title(first) + (f"; what if {what_if}" if what_if else ""), style="bold")
    console.print(_operators(steps))
    console.print(_totals(steps, acceptance))
    for note in notes(steps):
        console.print(f"note: {note}", style="dim")


def notes(steps: Sequence[Step]) -> list[str]:
    """What a reader must know, each sentence once."""
    first = steps[0]
    return [
        PEAK_NOTE if first.time is None else CURVES_NOTE,
        f"MFU: {first.mfu_text}",
        *(
            f"{s.device.key}: no rate for {', '.join(s.unknown)}; {_missing(s)}"
            for s in steps
            if s.unknown
        ),
        *dict.fromkeys(w for s in steps for w in s.warnings),
    ]


def _missing(step: Step) -> str:
    if step.time is None or step.time.missing:
        return "times are lower bounds"
    return "its share of the time is not counted"


def title(step: Step) -> str:
    """Model, work and layout in one line."""
    p = step.plan
    cp = f", cp {p.cp}" if p.cp > 1 else ""
    sizes = f"{p.ranks} ranks (tp {p.tp}, pp {p.pp}, ep {p.ep}, dp {p.dp}{cp})"
    work = {
        "train": f"{p.global_batch} x {p.seq} tokens, {p.micro_batches} micro-batches of {p.batch}",
        "prefill": f"{p.batch} x {p.seq} tokens a rank, context {p.context}",
        "decode": f"{p.batch} sequences a rank, context {p.context}, {p.mtp} drafts",
    }[p.phase]
    return f"{step.model.key} {p.phase}: {work}; {sizes}; counts per rank and step"


def _operators(steps: Sequence[Step]) -> Table:
    table = plain_table()
    table.add_column("operator", no_wrap=True)
    for name in ("calls", "FLOP", "HBM B", "L2 B", "link B"):
        table.add_column(name, justify="right", no_wrap=True)
    # One device leaves room for the time of every resource; several show the one that binds.
    used: list[str] = [r for r in RESOURCES if any(r in line.resource_s for line in steps[0].lines)]
    if len(steps) > 1:
        used = []
    for resource in used:
        table.add_column(f"{resource} t", justify="right", no_wrap=True)
    for step in steps:
        table.add_column(step.device.key, justify="right", no_wrap=True)
        table.add_column("bound", no_wrap=True)
        if step.time is not None:
            table.add_column("mark", no_wrap=True)
        table.add_column("share", justify="right", no_wrap=True)
    by_label = [{line.label: line for line in step.lines} for step in steps]
    for line in steps[0].lines:
        cells = [
            line.label,
            f"{line.calls:.4g}",
            human(_flops(line)),
            human(line.bytes["hbm"]),
            human(line.bytes["l2"]),
            human(sum(line.link.values())),
        ]
        cells += [duration(line.resource_s.get(r, 0.0)) for r in used]
        for step, lines in zip(steps, by_label, strict=True):
            cells += _timed(lines[line.label], step)
        table.add_row(*cells)
    return table


def _timed(line: Line, step: Step) -> list[str]:
    share = f"{line.seconds / step.serial:.1%}"
    if step.time is not None:
        mark = ">=" if line.missing else ""
        return [f"{mark}{duration(line.seconds)}", line.bound, line.mark, share]
    mark = ">=" if line.unknown - step.common_unknown else ""
    return [f"{mark}{duration(line.seconds)}", line.bound, share]


def _flops(line: Line) -> float:
    matrix = sum(v for k, v in line.flops.items() if k.startswith("cube"))
    return matrix or sum(line.flops.values())


def _totals(steps: Sequence[Step], acceptance: float | None) -> Table:
    table = plain_table()
    table.add_column("total", no_wrap=True)
    for step in steps:
        table.add_column(step.device.key, justify="right")
    rows = [totals(step, acceptance) for step in steps]
    for key in rows[0]:
        table.add_row(key, *(str(row[key]) for row in rows))
    return table


def totals(step: Step, acceptance: float | None = None) -> dict[str, str]:
    """Totals of a step as printed lines."""
    p, memory, device = step.plan, step.memory, step.device
    bound = step.time is None
    mark, most = (">= ", "<= ") if step.lower_bound else ("", "")
    rate, through = step.rate, " of one batch through all stages" if staged(step) else ""
    found = {f"step time{through}{' (bound)' if bound else ''}": mark + duration(step.seconds)}
    if staged(step):
        text = f"{mark}{duration(step.interval)}, {p.pp} batches in flight"
        found["stage interval, sets tokens/s"] = text
    if step.time is not None:
        found["step time, p10 to p90"] = band(step.time)
        found["operators in series"] = duration(step.serial)
        for part in step.time.parts:
            found[f"  {part.name}"] = duration(part.seconds)
        shares = ", ".join(f"{k} {v:.0%}" for k, v in step.time.shares.items())
        found["origin of the time"] = shares
        found["claimed"] = "yes" if step.time.claimed else "not claimed"
    busy = step.busy
    found["binds"] = max(busy, key=lambda r: busy[r], default="unknown") + (
        ", of what is known" if step.lower_bound else ""
    )
    found["resources at peak, of the step"] = ", ".join(f"{r} {v:.0%}" for r, v in busy.items())
    found |= {
        "tokens/s per rank": f"{most}{rate:.5g}",
        "tokens/s per package": f"{most}{rate * device.ranks_per_package:.5g}",
        f"MFU{' (upper bound)' if bound else ''}": "unknown"
        if step.mfu is None
        else f"{'' if bound else most}{step.mfu:.1%}",
    }
    if acceptance is not None:
        found["accepted drafts a step (given)"] = f"{acceptance:g}"
        found["TPOT, step over one plus accepted"] = mark + duration(
            step.seconds / (1 + acceptance)
        )
    for kind, size in sorted(memory.weights.items(), key=lambda kv: -kv[1]):
        found[f"weights: {kind}"] = human(size) + "B"
    if p.phase == "train":
        found["gradients (fp32)"] = human(memory.gradients) + "B"
        found["optimizer (fp32 master, two moments)"] = human(memory.optimizer) + "B"
    for name, size in memory.buffers.items():
        found[name] = human(size) + "B"
    if p.phase != "train":
        found["KV per token of context"] = f"{memory.kv_per_token:.6g} B"
        found["KV fixed per sequence"] = human(memory.kv_fixed) + ("B" if memory.kv_fixed else "")
    found["memory"] = human(memory.total) + "B"
    found["fits"] = fits(step)
    return found


def band(time: StepTime) -> str:
    """p10 to p90 as printed; a lower bound has no upper end."""
    low, high = time.band
    return f"{duration(low)} to {'unknown' if high is None else duration(high)}"


def staged(step: Step) -> bool:
    """Whether latency and interval differ: inference over pipeline stages."""
    return step.plan.phase != "train" and step.plan.pp > 1


def at_least(step: Step) -> str:
    """The step time, marked where it is a lower bound."""
    return f"{'>= ' if step.lower_bound else ''}{duration(step.seconds)}"


def fits(step: Step) -> str:
    """Whether the fullest rank fits, and by how much."""
    have = step.device.hbm_bytes
    if have is None:
        return "unknown"
    spare = have - step.memory.total
    return (
        f"{'yes' if spare >= 0 else 'no'}, {human(abs(spare))}B {'free' if spare >= 0 else 'over'}"
    )
