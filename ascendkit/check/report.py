"""How results are shown: progress on stderr, tables or JSON lines on stdout."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ascendkit.bench.record import Record
from ascendkit.check.bandwidth import Measured
from ascendkit.check.outcome import FAIL, PASS, SKIP, Outcome
from ascendkit.check.plan import Plan
from ascendkit.cli import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

Row = TypeVar("Row", Outcome, Measured)

MAX_DETAILS = 20


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, where that is a terminal; call the result with what comes next."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    out = console(stderr=True)
    columns = (BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TextColumn("{task.description}"), console=out, transient=True,
        disable=not out.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=total)
        done = -1

        def step(what: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, description=what)

        yield step


def as_json(
    plan: Plan, outcomes: Sequence[Outcome], measured: Sequence[Measured], seed: int, code: int
) -> None:
    """One record a line, the last one a summary."""
    for line in [o.to_json() for o in outcomes] + [m.to_json() for m in measured]:
        print(line)
    summary = {
        "record": "summary",
        "seed": seed,
        "exit": code,
        "cases": dict(Counter(o.status for o in outcomes)),
        "measured": sum(m.record is not None for m in measured),
        "platforms": plan.platforms,
        "cannot_run": plan.cannot,
        "without_cases": plan.nothing,
    }
    print(json.dumps(summary))


def as_table(
    plan: Plan, outcomes: Sequence[Outcome], measured: Sequence[Measured], seed: int, code: int
) -> None:
    """Correctness by op and platform, failures in full, bandwidth by case, what did not run."""
    out = console()
    if outcomes:
        print("correctness")
        out.print(_correctness(outcomes))
        for op, judge in _judges(outcomes).items():
            print(f"the reference of {op} is judged by: {judge}")
        _details("failed", [o for o in outcomes if o.status == FAIL])
    for rows in _by_op([m for m in measured if m.record]).values():
        print(_heading(rows))
        out.print(_bandwidth(rows))
    _details("not measured", [m for m in measured if m.record is None])
    for name, reason in plan.cannot.items():
        print(f"platform {name} does not run here: {reason}")
    for reason, ops in _by_reason(plan.nothing.items()).items():
        print(f"{len(ops)} ops without cases ({reason}): {', '.join(ops)}")
    skipped = [(f"{o.op} on {o.platform}", o.message) for o in outcomes if o.status == SKIP]
    for reason, ops in _by_reason(skipped).items():
        print(f"skipped {len(ops)} cases of {', '.join(dict.fromkeys(ops))}: {reason}")
    count = Counter(o.status for o in outcomes)
    ran = f"{count[PASS]} passed, {count[FAIL]} failed, {count[SKIP]} skipped"
    print(f"{ran}, {sum(m.record is not None for m in measured)} measured; seed={seed}")
    if code and not count[FAIL] and all(m.record or m.skipped for m in measured):
        print("no case ran: that is a failure too")


def _correctness(outcomes: Sequence[Outcome]) -> Table:
    table = _table(("op", "platform", "worst, limit"), ("pass", "fail", "skip", "s"))
    for (op, platform), mine in _by_op(outcomes).items():
        count = Counter(o.status for o in mine)
        # Refused input is judged by its exception and has no distance.
        top = max((o for o in mine if o.measure), key=lambda o: o.value, default=None)
        worst = "-" if top is None else f"{top.measure} {top.value:.3g}, {top.limit:g}"
        seconds = f"{sum(o.seconds for o in mine):.1f}"
        table.add_row(
            op, platform, worst, str(count[PASS]), _red(count[FAIL]), str(count[SKIP]), seconds
        )
    return table


def _heading(rows: Sequence[Measured]) -> str:
    first = next(m.record for m in rows if m.record is not None)
    what = "host time, no device figure" if _is_host(first) else "measured"
    return f"{first.op} on {first.platform}, {first.device} ({what})"


def _is_host(record: Record) -> bool:
    return record.ceiling is None and record.bound is None


def _bandwidth(rows: Sequence[Measured]) -> Table:
    records = [m.record for m in rows if m.record is not None]
    host = _is_host(records[0])
    more = () if host else ("ceiling", "of it", "bound", "L2")
    table = _table(("case",), ("us p50", "spread", "GB/s", *more))
    for r in records:
        t, c = r.time_us, r.ceiling
        cells = [r.case, f"{t['p50']:.4g}", f"{(t['p80'] - t['p20']) / t['p50']:.1%}"]
        cells.append(f"{r.achieved['gbs']:.4g}")
        if not host:
            cells += [
                "-" if c is None else f"{c['kind']} {c['gbs']:.4g}",
                "-" if r.of_ceiling is None else f"{r.of_ceiling:.0%}",
                r.bound or "-",
                r.l2_state,
            ]
        table.add_row(*cells)
    return table


def _table(left: Sequence[str], right: Sequence[str]) -> Table:
    """Fits 80 columns: no vertical lines, and names fold before figures do."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _judges(outcomes: Sequence[Outcome]) -> dict[str, str]:
    mine = (o for o in outcomes if o.platform == "reference" and o.measure)
    return {o.op: o.judge for o in mine}


def _by_op(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.op, row.platform].append(row)
    return found


def _details(title: str, rows: Sequence[Any]) -> None:
    for row in rows[:MAX_DETAILS]:
        print(f"{title}: {row.op} on {row.platform}, case {row.case}: {row.message}")
    if len(rows) > MAX_DETAILS:
        print(f"{title}: {len(rows) - MAX_DETAILS} more (output=json shows all)")


def _by_reason(pairs: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, reason in pairs:
        found[reason].append(name)
    return found


def _red(count: int) -> str:
    return f"[bold red]{count}[/]" if count else "0"
