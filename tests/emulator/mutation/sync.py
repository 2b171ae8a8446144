"""Mutants of synchronisation: judged by the closure of their trace and by random legal orders."""

from __future__ import annotations

import time

from ascendkit.emulator import EmulatorError, records
from ascendkit.emulator.mutants import Mutant
from tests.emulator.mutation import closure
from tests.emulator.mutation.outcome import (
    EQUIVALENT,
    REPORTED,
    SURVIVED,
    Correct,
    Outcome,
    reported,
)

REPLAYS = 100


def judge(base: Correct, mutant: Mutant, replays: int = REPLAYS) -> Outcome:
    """The verdict on a mutant of synchronisation."""
    start = time.perf_counter()
    by = reported(base.launch, base.findings, [mutant])
    if by:
        return Outcome(mutant, REPORTED, by, time.perf_counter() - start)
    reasons = _differences(base, mutant, replays)
    verdict = SURVIVED if reasons else EQUIVALENT
    return Outcome(mutant, verdict, reasons, time.perf_counter() - start)


def _differences(base: Correct, mutant: Mutant, replays: int) -> tuple[str, ...]:
    """What shows that a mutant is not equivalent."""
    records.read()
    base.launch.run(trace=2, mutate=[mutant])
    new = closure.unordered(records.read()) - base.conflicts
    if new:
        first = min(new)
        return (f"{len(new)} unordered conflicts, first {first}",)
    for seed in range(1, replays + 1):
        try:
            if base.launch.run(trace=1, replay=seed, mutate=[mutant]) != base.outputs:
                return (f"replay {seed} leaves other bits",)
        except EmulatorError as error:
            return (f"replay {seed} ends with {error.code}",)
    return ()
