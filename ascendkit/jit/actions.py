"""What the commands do. Each returns its exit status."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascendkit.cli import console
from ascendkit.jit import history, inventory, parallel
from ascendkit.jit import prune as pruning
from ascendkit.jit.inventory import Item
from ascendkit.jit.request import Request

if TYPE_CHECKING:
    from ascendkit.jit.cli import Settings

_COLOURS = {"sound": "green", "damaged": "red", "uncommitted": "yellow", "foreign": "dim"}


def ls(settings: Settings) -> int:
    """List entries."""
    found = _items(settings)
    _show(settings, "entries", found)
    return 0


def verify(settings: Settings) -> int:
    """List entries that are neither sound nor another program's."""
    found = _items(settings)
    bad = [item for item in found if item.state in ("damaged", "uncommitted")]
    if settings.json:
        _emit({"checked": len(found), "findings": [item.record() for item in bad]})
    else:
        if bad:
            _table("findings", bad)
        print(f"{len(found)} entries checked, {len(bad)} findings")
    return 1 if bad else 0


def prune(settings: Settings) -> int:
    """Remove what nobody needs."""
    limits: dict[str, Any] = {
        "older_than_s": settings.seconds("older_than"),
        "max_bytes": settings.bytes("max_size"),
        "dry_run": settings.flag("dry_run"),
    }
    failed = 0
    report = []
    for root in settings.roots():
        try:
            pruned = pruning.prune(root, **limits)
        except OSError as error:
            print(f"{root}: {error.strerror}", file=sys.stderr)
            failed += 1
            continue
        report.append(
            {
                "root": str(root),
                "dry_run": limits["dry_run"],
                "entries": [item.name for item in pruned.entries],
                "bytes": pruned.size,
                "temporaries": [path.name for path in pruned.temporaries],
                "locks": [path.name for path in pruned.locks],
                "requests": [path.name for path in pruned.requests],
            }
        )
    if settings.json:
        _emit(report)
    else:
        for row in report:
            verb = "would remove" if row["dry_run"] else "removed"
            counts = (f"{len(row[k])} {k}" for k in ("entries", "temporaries", "locks", "requests"))
            print(f"{row['root']}: {verb} {', '.join(counts)}; {_size(row['bytes'])}")
    return 1 if failed else 0


def warm(settings: Settings) -> int:
    """Compile what the first root remembers."""
    root = settings.roots()[0]
    age = settings.seconds("newer_than")
    workers = settings.count("workers") or parallel.default_workers()
    wanted: list[Request[Any]] = []
    failures: list[dict[str, str]] = []
    for path, request in history.requests(root):
        if age is not None and time.time() - path.stat().st_mtime > age:
            continue
        if isinstance(request, ValueError):
            failures.append({"request": path.name, "problem": str(request)})
        else:
            wanted.append(request)
    before = {item.name for item in inventory.items(root) if item.state == "sound"}
    outcomes = []
    for prefix in sorted({request.config.env_prefix for request in wanted}):
        group = [request for request in wanted if request.config.env_prefix == prefix]
        environ = {**os.environ, f"{prefix}_JIT_CACHE_DIR": str(root)}
        outcomes += list(zip(group, parallel.compile_requests(group, workers, environ)))
    done = [folder for _, folder in outcomes if isinstance(folder, Path)]
    failures += [
        {"request": request.tag, "problem": str(outcome)}
        for request, outcome in outcomes
        if not isinstance(outcome, Path)
    ]
    compiled = len({folder.name for folder in done} - before)
    if settings.json:
        record = {"root": str(root), "compiled": compiled, "present": len(done) - compiled}
        _emit({**record, "failures": failures})
    else:
        for failure in failures:
            print(f"{failure['request']}: {failure['problem']}", file=sys.stderr)
        print(
            f"{root}: {compiled} compiled, {len(done) - compiled} present, {len(failures)} failed"
        )
    return 1 if failures else 0


def bench(settings: Settings) -> int:
    """Time the runtime; a finding if a hit is slower than promised."""
    from ascendkit.jit import bench as benches

    records = benches.run()
    rows = [asdict(record) for record in records]
    out = settings.path("out")
    if out is not None:
        with out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    if settings.json:
        _emit(rows)
    else:
        benches.show(records)
    return 1 if any(record.too_slow for record in records) else 0


def _items(settings: Settings) -> list[Item]:
    return [item for root in settings.roots() for item in inventory.items(root)]


def _show(settings: Settings, title: str, found: list[Item]) -> None:
    if settings.json:
        _emit([item.record() for item in found])
    elif found:
        _table(title, found)
    else:
        print(f"no entries in {':'.join(map(str, settings.roots()))}")


def _table(title: str, found: list[Item]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title)
    for column in ("name", "state", "size", "used", "compiler", "root"):
        table.add_column(column, overflow="fold", justify="right" if column == "size" else "left")
    for item in found:
        state = Text(item.state, style=_COLOURS[item.state])
        if item.problem:
            state.append(f": {item.problem}")
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(item.used))
        cells = (_size(item.size), used, item.compiler, str(item.root))
        table.add_row(Text(item.name), state, *map(Text, cells))
    console().print(table)


def _size(count: int) -> str:
    exponent = min(max(count.bit_length() - 1, 0) // 10, 3)
    if exponent == 0:
        return f"{count} B"
    return f"{count / 1024**exponent:.1f} {('KiB', 'MiB', 'GiB')[exponent - 1]}"


def _emit(record: object) -> None:
    print(json.dumps(record, indent=1, ensure_ascii=False))
