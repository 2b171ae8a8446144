"""How many cases of an op passed on a platform: the line of evidence that a run leaves behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ascendkit.bench.store import append_line
from ascendkit.check.outcome import FAIL, PASS, SKIP, Outcome
from ascendkit.errors import bad_value

KIND = "verdict"


@dataclass(frozen=True)
class Tally:
    """The correctness loop over one op on one platform.

    Args:
        level: cases up to this level were run.
        passed, failed, skipped: cases; skipped ones the platform does not serve.
        judge: what the results were held against.
        seed: repeats the inputs.
        device, commit, command: where, of which code, and how.
    """

    op: str
    platform: str
    level: str
    passed: int
    failed: int
    skipped: int
    judge: str
    seed: int
    device: str
    commit: str
    command: str

    def to_json(self) -> str:
        """One line, without the newline."""
        return json.dumps({"record": KIND, **asdict(self)})


def from_json(line: str) -> Tally | None:
    """The tally of a line, None for a line of another kind; ValueError for a broken one."""
    raw = json.loads(line)
    if not isinstance(raw, dict) or raw.pop("record", None) != KIND:
        return None
    legal = {f.name: f.type for f in fields(Tally)}
    if set(raw) != set(legal):
        raise bad_value("verdict fields", sorted(raw), f"{sorted(legal)}")
    for name, kind in legal.items():
        wanted = int if kind == "int" else str
        if type(raw[name]) is not wanted or (wanted is int and raw[name] < 0):
            raise bad_value(f"verdict {name}", raw[name], f"a {wanted.__name__} of at least 0")
    return Tally(**raw)


def tallies(
    outcomes: Iterable[Outcome], level: str, seed: int, device_of: dict[str, str], commit: str,
    command: str,
) -> list[Tally]:  # fmt: skip
    """One tally an op and platform, in the order of the run."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.op, outcome.platform), []).append(outcome)
    found = []
    for (op, platform), group in groups.items():
        count = Counter(o.status for o in group)
        judges = "; ".join(sorted({o.judge for o in group if o.judge}))
        device = device_of.get(platform, "unknown")
        tally = (count[PASS], count[FAIL], count[SKIP], judges, seed, device, commit, command)
        found.append(Tally(op, platform, level, *tally))
    return found


def append(path: Path, found: Iterable[Tally]) -> None:
    """Add a line a tally to a file of records."""
    for tally in found:
        append_line(path, tally.to_json())
