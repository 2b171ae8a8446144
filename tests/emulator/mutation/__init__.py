"""The mutation suite: every synchronisation and every access of the corpus wrong once, and who
notices.

    python -m tests.emulator.mutation [--kernels add,gemm_l1] [--sample 200] [--out FILE]

A mutant is *reported* when the checked launch raises or leaves a finding that the correct kernel
does not have (of capacity: when ``fits`` and ``lint`` say so). A mutant of synchronisation that is
not is *equivalent* when the closure (``closure``) of its trace has no unordered conflict that the
correct kernel's has not, and 100 replays in random legal orders leave the bits that the correct
kernel leaves. A mutant of data that is not reported is judged by an oracle of memory (``memory``):
*equivalent* with the same values by the same accesses, *harmless* with the same values by others
that break no rule, *values only* when no rule is broken and something else is computed, which only
a reference can tell. Everything else *survived*.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.emulator.corpus import Launch, cases, launches
from tests.emulator.mutation.outcome import (
    EQUIVALENT,
    HARMLESS,
    REPORTED,
    SURVIVED,
    VALUES,
    Correct,
    Outcome,
    Score,
    correct,
)
from tests.emulator.mutation.sync import judge

__all__ = [
    "EQUIVALENT",
    "HARMLESS",
    "REPORTED",
    "SURVIVED",
    "VALUES",
    "Correct",
    "Outcome",
    "Score",
    "corpus",
    "correct",
    "judge",
]


def corpus(names: Iterable[str] = (), *, peers: bool = True) -> list[Launch]:
    """Launches of the named cases, or of all."""
    wanted = set(names)

    def chosen(all_cases: dict[str, cases.Case]) -> dict[str, cases.Case]:
        return {k: v for k, v in all_cases.items() if not wanted or k in wanted}

    found = launches(chosen(cases.own()))
    if peers and (not wanted or any(name.startswith("tk_") for name in wanted)):
        with cases.peers() as more:
            found += launches(chosen(more))
    return found
