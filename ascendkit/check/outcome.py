"""What checking one case of one op on one platform gave."""

from __future__ import annotations

import json
import math
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ascendkit.testing.verdict import Verdict

PASS, FAIL, SKIP = "pass", "fail", "skip"


@dataclass(frozen=True)
class Outcome:
    """One line of the correctness report.

    Args:
        status: ``pass``, ``fail``, or ``skip`` where the platform does not serve the case.
        message: what went wrong or why it was skipped.
        judge: what the result was held against.
        measure, value, limit: how, what was found, and what is allowed.
        mismatches, total, worst, got, want: see :class:`ascendkit.testing.Verdict`.
        covered: whether write coverage and guards around the outputs were checked.
        seed: the run's seed; it repeats the case.
        seconds: wall time spent on the case.
    """

    op: str
    platform: str
    case: str
    status: str
    message: str = ""
    judge: str = ""
    measure: str = ""
    value: float = 0.0
    limit: float = 0.0
    mismatches: int = 0
    total: int = 0
    worst: tuple[int, ...] | None = None
    got: Any = None
    want: Any = None
    covered: bool = False
    seed: int = 0
    seconds: float = 0.0

    def to_json(self) -> str:
        """One line; numbers JSON cannot spell become text."""
        plain = {k: _plain(v) for k, v in asdict(self).items()}
        return json.dumps({"record": "check", **plain}, allow_nan=False)


@dataclass(frozen=True)
class Finding:
    """What a judge says of a case, before it is booked under an op and a platform."""

    status: str
    message: str = ""
    judge: str = ""
    verdict: Verdict | None = None
    covered: bool = False


def failed(message: str, judge: str = "") -> Finding:
    """A failure that no comparison of values expresses."""
    return Finding(FAIL, message, judge)


def skipped(reason: str) -> Finding:
    """A case the platform does not serve."""
    return Finding(SKIP, reason)


def describe(error: BaseException) -> str:
    """An exception in one line, with the place it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:500]}{at}"


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
