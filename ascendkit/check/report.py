"""How results are shown: progress on stderr, tables or JSON lines on stdout."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ascendkit.check.bandwidth import Measured
from ascendkit.check.outcome import FAIL, PASS, SKIP, Outcome
from ascendkit.check.plan import Plan
from ascendkit.cli import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

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
        out.print(_correctness(outcomes))
        _details("failed", [o for o in outcomes if o.status == FAIL])
    if measured:
        for host in (False, True):
            rows = [m for m in measured if m.record and (m.platform == "reference") == host]
            if rows:
                out.print(_bandwidth(rows, host))
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
    from rich.table import Table

    table = Table(title="correctness", title_justify="left")
    for name in ("op", "platform", "judged by", "measure"):
        table.add_column(name, overflow="fold")
    for name in ("worst", "limit", "pass", "fail", "skip", "s"):
        table.add_column(name, justify="right")
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for o in outcomes:
        groups[o.op, o.platform].append(o)
    for (op, platform), mine in groups.items():
        count = Counter(o.status for o in mine)
        # Refused input is judged by its exception; the column names what judged the values.
        values = [o for o in mine if o.measure] or mine
        top = max(values, key=lambda o: o.value)
        table.add_row(
            op, platform, values[0].judge or "-", top.measure or "-", f"{top.value:.3g}",
            f"{top.limit:g}", str(count[PASS]), _red(count[FAIL]), str(count[SKIP]),
            f"{sum(o.seconds for o in mine):.1f}",
        )  # fmt: skip
    return table


def _bandwidth(rows: Sequence[Measured], host: bool) -> Table:
    from rich.table import Table

    title = "host time of the reference: no device figure" if host else "bandwidth (measured)"
    table = Table(title=title, title_justify="left")
    for name in ("op", "case", "platform"):
        table.add_column(name, overflow="fold")
    names = ("us p50", "p20-p80", "GB/s")
    more = () if host else ("ceiling GB/s", "of ceiling", "bound", "L2")
    for name in (*names, *more):
        table.add_column(name, justify="right")
    for m in rows:
        r = m.record
        if r is None:
            continue
        t = r.time_us
        cells = [
            m.op, m.case, m.platform, f"{t['p50']:.4g}", f"{t['p20']:.4g}-{t['p80']:.4g}",
            f"{r.achieved['gbs']:.4g}",
        ]  # fmt: skip
        if not host:
            c = r.ceiling
            cells += [
                "-" if c is None else f"{c['gbs']:.4g} ({c['kind']})",
                "-" if r.of_ceiling is None else f"{r.of_ceiling:.0%}",
                r.bound or "-",
                r.l2_state,
            ]
        table.add_row(*cells)
    return table


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
