"""What the commands print: findings and capacity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.emulator.findings import exits


def told(kernel: Any) -> int:
    """Print what the judges found in the last launch of a source's kernel; the exit code."""
    from ascendkit.emulator.findings.finding import Reader

    reader = Reader(kernel.text)
    return show([reader.of_raw(f, kernel.regions) for f in kernel.findings], "table")


def result(result: Any, output: str) -> int:
    """Print the findings of a CheckResult; the exit code."""
    show(result.findings, output)
    return exits.of_findings(result.findings, ended=result.run is not None)


def show(findings: Sequence[Any], output: str) -> int:
    """Print findings as ``table``, ``json`` or ``html``; the exit code."""
    from ascendkit.cli import console
    from ascendkit.emulator.findings import render

    if output == "json":
        print(json.dumps([f.to_json() for f in findings], indent=1))
    elif output == "html":
        print(render.html(findings), end="")
    else:
        render.show(findings, console())
        print(render.summary(findings))
    return exits.of_findings(findings)


def capacity(fit: Any) -> None:
    """Print what a kernel needs of each memory."""
    from ascendkit.cli import console, plain_table

    out = console()
    print(f"{fit.kernel}: {fit.verdict}")
    if fit.bound:
        print(fit.bound)
    if fit.reason:
        print(f"TileLang does not lower it: {fit.reason}")
    table = plain_table()
    for title in ("memory", "need B", "need bits", "at once B", "at line", "950 B", "A2/A3 B"):
        table.add_column(title, justify="left" if title in ("memory", "at line") else "right")
    for m in fit.memories:
        limits = [
            f"{'' if m.need <= fit.capacity[c][m.space] else 'OVER '}{fit.capacity[c][m.space]}"
            for c in ("950", "A2/A3")
        ]
        peak = f"{Path(m.peak.file).name}:{m.peak.line}" if m.peak else ""
        table.add_row(m.space, str(m.need), str(m.need * 8), str(m.live), peak, *limits)
    out.print(table)
    for m in fit.memories:
        for chip, why in m.over.items():
            print(f"  {m.space} on {chip}: {why}")
    for text in fit.overlaps:
        print(f"  {text}")
    if not fit.buffers:
        return
    table = plain_table()
    for title in ("buffer", "memory", "offset", "bytes", "versions", "in use", "at the peak"):
        right = title in ("offset", "bytes", "versions")
        table.add_column(title, justify="right" if right else "left")
    for b in sorted(fit.buffers, key=lambda b: (b.space, b.offset, b.name)):
        lines = "-".join(dict.fromkeys(str(o.line) for o in (b.first, b.last) if o))
        at_peak = any(b is one for m in fit.memories for one in m.at_peak)
        offset = str(b.offset) if b.offset >= 0 else "?"
        peak = "yes" if at_peak else ""
        table.add_row(b.name, b.space, offset, str(b.bytes), str(b.versions), lines, peak)
    out.print(table)
