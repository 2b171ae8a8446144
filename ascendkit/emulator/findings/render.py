"""Findings for people: plain text, a terminal with colours, a self-contained page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ascendkit.emulator.findings.finding import Finding, Point
from ascendkit.emulator.linemap import Origin

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS = {"error": "red", "warning": "yellow", "advice": "cyan", "note": "blue"}
_WIDE, _RANGES = 100, 4


def plain(findings: Iterable[Finding]) -> str:
    """All findings as text without colours."""
    return "\n\n".join("\n".join(text for _, text in _lines(f)) for f in findings)


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print to a terminal; without colours where it is none."""
    from rich.text import Text

    for finding in findings:
        styles = {
            "head": f"bold {_COLOURS[finding.severity]}",
            "python": "bold",
            "dim": "dim",
            "cure": "green",
        }
        for kind, text in _lines(finding):
            console.print(Text(text, style=styles.get(kind, "")), soft_wrap=True)
        console.print()


def summary(findings: Sequence[Finding]) -> str:
    """``2 errors, 1 warning`` or ``no findings``."""
    counts = {s: sum(f.severity == s for f in findings) for s in _COLOURS}
    plural = {"error": "errors", "warning": "warnings", "advice": "pieces of advice"}
    parts = [f"{n} {s if n == 1 else plural.get(s, s + 's')}" for s, n in counts.items() if n]
    return ", ".join(parts) or "no findings"


def html(findings: Sequence[Finding], title: str = "Findings") -> str:
    """One page that needs nothing else."""
    body = []
    for finding in findings:
        rows = "\n".join(
            f'<span class="{kind or "text"}">{escape(text)}</span>'
            for kind, text in _lines(finding)
        )
        body.append(f'<pre class="{finding.severity}">{rows}</pre>')
    style = (
        "body{font-family:sans-serif;max-width:70em;margin:2em auto;background:#fff;color:#222}"
        "pre{padding:1em;border-left:.4em solid #999;background:#f6f6f6;overflow:auto}"
        "pre.error{border-color:#c0392b}pre.warning{border-color:#d68910}"
        "pre.advice{border-color:#148f77}pre.note{border-color:#2874a6}"
        ".head,.python{font-weight:bold}.dim{color:#777}.cure{color:#1e8449}"
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{style}</style><h1>{escape(title)}</h1><p>{escape(summary(findings))}</p>"
        + "\n".join(body)
        + "</html>\n"
    )


def _lines(f: Finding) -> Iterator[tuple[str, str]]:
    times = f" ({f.count} times)" if f.count > 1 else ""
    yield "head", f"{f.code} {f.severity}: {f.title}{times}"
    if f.detail and f.detail != f.title:
        for row in f.detail.splitlines():
            yield "", f"  {row}"
    if f.space:
        name = f"{f.buffer}: " if f.buffer else ""
        ranges = f.ranges or ((f.begin, f.end),)
        text = ", ".join(f"[{begin}, {end})" for begin, end in ranges[:_RANGES])
        more = f" and {len(ranges) - _RANGES} more" if len(ranges) > _RANGES else ""
        yield "", f"  {name}{f.space} bytes {text}{more}"
    yield from _point(f.here, "")
    if f.other is not None:
        yield from _point(f.other, "with " if f.here.access else "see ")
    if f.condition:
        yield "dim", f"  inside {' / '.join(_short(c) for c in f.condition)}"
    yield "dim", f"  holds for {f.scope}; {f.page}"
    if f.cure:
        yield "cure", f"  cure: {f.cure}"


def _point(point: Point, lead: str) -> Iterator[tuple[str, str]]:
    if not point.line and not point.core and not point.python:
        return
    who = " ".join(x for x in (point.access, f"on {point.pipe}" if point.pipe else "") if x)
    where = f"in {point.core}" if point.core else ""
    head = (lead + " ".join(x for x in (who, where) if x)).strip()
    if head:
        yield "", f"  {head}"
    for origin in point.python:
        yield "python", f"    {_how(origin)}{_near(origin.file)}:{origin.line}"
        yield from _excerpt(origin)
    if point.line:
        yield "dim", f"    generated line {point.line}: {_short(point.text)}"


def _near(file: str) -> str:
    """Relative to here, if it is below."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _how(origin: Origin) -> str:
    return {"at": "", "in": "in the block at "}.get(origin.how, f"{origin.how} ")


def _excerpt(origin: Origin) -> Iterator[tuple[str, str]]:
    """The line with its neighbours, as far as the file is there."""
    import linecache

    if not origin.text:
        return
    around = range(origin.line - 1, origin.line + 2) if origin.how == "at" else [origin.line]
    for number in around:
        row = linecache.getline(origin.file, number).rstrip()
        if row.strip() or number == origin.line:
            mark = ">" if number == origin.line else " "
            yield "python" if mark == ">" else "dim", f"    {mark} {number:>5} | {_short(row)}"


def _short(text: str) -> str:
    return text if len(text) <= _WIDE else text[: _WIDE - 3] + "..."
