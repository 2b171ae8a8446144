"""What a comparison found: one record for every comparer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """Outcome of one comparison. True in a boolean context when the results agree.

    Args:
        ok: the results agree by the measure.
        message: one line that says what differs, empty when nothing does.
        measure: ``bitwise``, ``ulp``, ``calc_diff`` or ``set_equal``.
        value: what was measured: largest ulp distance, calc_diff, or number of differences.
        mismatches: elements that differ at all.
        total: elements compared.
        worst: coordinate of the largest difference, None when nothing differs.
        got: value found at ``worst``.
        want: value expected at ``worst``.
    """

    ok: bool
    message: str = ""
    measure: str = ""
    value: float = 0.0
    mismatches: int = 0
    total: int = 0
    worst: tuple[int, ...] | None = None
    got: Any = None
    want: Any = None

    def __bool__(self) -> bool:
        return self.ok


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several outputs: the first failure speaks, counts add up."""
    found = list(verdicts)
    if not found:
        return Verdict(True)
    first = next((v for v in found if not v.ok), max(found, key=lambda v: v.value))
    return Verdict(
        ok=all(v.ok for v in found),
        message=first.message,
        measure=first.measure,
        value=first.value,
        mismatches=sum(v.mismatches for v in found),
        total=sum(v.total for v in found),
        worst=first.worst,
        got=first.got,
        want=first.want,
    )
