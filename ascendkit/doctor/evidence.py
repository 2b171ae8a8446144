"""What was measured and checked: the last record of each op on each platform."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ascendkit.data import configs
from ascendkit.errors import bad_value

if TYPE_CHECKING:
    from ascendkit.bench.record import Record
    from ascendkit.check.tally import Tally

NOT_RUN = "not run"
Found = TypeVar("Found")


def results() -> Path:
    """Folder of recorded figures; an installed wheel has none."""
    return configs().parent / "results"


def last_figures(
    folder: Path, forms: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
) -> dict[tuple[str, str], str]:
    """(op, platform) -> one line on the last record of the timed ops below ``folder``.

    Args:
        folder: of JSONL files.
        forms: how a component's own kinds of record read, by the value of their key ``record``:
            ``{op, platform, where: {field: value}, text}``; ``text`` is a format string over the
            record's fields.

    Raises:
        ValueError: a line that is not JSON, or that claims to be a record and is not a legal one.
    """
    found = {}
    for name, number, line in _lines(folder):
        record = _parsed(name, number, line, _record)
        if record is not None:
            found[record.op, record.platform] = _figure(record)
            continue
        raw = json.loads(line)
        for form in (forms or {}).get(str(raw.get("record")), ()) if isinstance(raw, dict) else ():
            if all(raw.get(k) == v for k, v in form.get("where", {}).items()):
                found[form["op"], form["platform"]] = form["text"].format_map(raw)
    return found


def last_verdicts(folder: Path) -> dict[tuple[str, str], str]:
    """(op, platform) -> how many cases passed in the last recorded run.

    Raises:
        ValueError: a line that is not JSON, or a verdict that is not a legal one.
    """
    from ascendkit.check.tally import from_json

    found = {}
    for name, number, line in _lines(folder):
        tally = _parsed(name, number, line, from_json)
        if tally is not None:
            found[tally.op, tally.platform] = _verdict(tally)
    return found


def _lines(folder: Path) -> Iterator[tuple[str, int, str]]:
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield path.name, number, line


def _parsed(name: str, number: int, line: str, read: Callable[[str], Found]) -> Found:
    try:
        return read(line)
    except ValueError as e:
        raise bad_value(f"{name}:{number}", line[:80], f"a record ({e})") from None


def _record(line: str) -> Record | None:
    from ascendkit.bench.record import from_json

    raw = json.loads(line)
    # Other kinds of line (start-up times, emulated estimates) have no measured time of an op.
    return from_json(line) if isinstance(raw, dict) and {"op", "time_us"} <= set(raw) else None


def _figure(record: Record) -> str:
    text = f"{record.time_us['p50']:.4g} us p50"
    if record.ceiling is not None:
        rate, top = record.achieved["gbs"], record.ceiling
        text += f", {rate:.4g} GB/s = {rate / top['gbs']:.0%} of {top['kind']}"
    return f"{text} ({record.case}; {record.device}; {record.commit[:12]})"


def _verdict(tally: Tally) -> str:
    ran = tally.passed + tally.failed
    skipped = f", {tally.skipped} not served" if tally.skipped else ""
    return f"{tally.passed} of {ran}{skipped} ({tally.level}; {tally.device}; {tally.commit[:12]})"
