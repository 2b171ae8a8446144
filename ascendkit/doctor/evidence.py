"""What was measured: the last recorded figure of each op on each platform."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ascendkit.data import configs
from ascendkit.errors import bad_value

if TYPE_CHECKING:
    from ascendkit.bench.record import Record

NOT_RUN = "not run"


def results() -> Path:
    """Folder of recorded figures; an installed wheel has none."""
    return configs().parent / "results"


def last_figures(folder: Path) -> dict[tuple[str, str], str]:
    """(op, platform) -> one line on the last record of the timed ops below ``folder``.

    Raises:
        ValueError: a line that is not JSON, or that claims to be a record and is not a legal one.
    """
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            record = _record(path, number, line)
            if record is not None:
                found[record.op, record.platform] = _figure(record)
    return found


def _record(path: Path, number: int, line: str) -> Record | None:
    from ascendkit.bench.record import from_json

    try:
        raw = json.loads(line)
        # Other kinds of line (start-up times, emulated estimates) have no measured time of an op.
        return from_json(line) if isinstance(raw, dict) and {"op", "time_us"} <= set(raw) else None
    except ValueError as e:
        raise bad_value(f"{path.name}:{number}", line[:80], f"a record ({e})") from None


def _figure(record: Record) -> str:
    text = f"{record.time_us['p50']:.4g} us p50"
    if record.ceiling is not None:
        rate, top = record.achieved["gbs"], record.ceiling
        text += f", {rate:.4g} GB/s = {rate / top['gbs']:.0%} of {top['kind']}"
    return f"{text} ({record.case}; {record.device}; {record.commit[:12]})"
