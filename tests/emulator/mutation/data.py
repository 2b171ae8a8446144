"""Mutants of data: bounds by one, strides, masks, threads, and loads, fills and stores left out.

Copies and products are changed by the runtime; vector, SIMT and scalar code is prepared once
(``places``). Outputs that the correct kernel writes whole are passed as memory without a value, as
TileLang allocates them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

from ascendkit.emulator import EmulatorError, device, mutants, records
from ascendkit.emulator.kernel import EmulatedKernel
from ascendkit.emulator.mutants import Mutant
from tests.emulator.corpus import Launch
from tests.emulator.mutation import memory, places
from tests.emulator.mutation.outcome import (
    EQUIVALENT,
    HARMLESS,
    REPORTED,
    SURVIVED,
    VALUES,
    Outcome,
    Seen,
    findings,
    reported,
)


@dataclass
class Prepared:
    """A launch of the prepared source, and what it does without a mutant."""

    launch: Launch
    mutants: list[Mutant]
    fresh: tuple[int, ...]
    findings: set[Seen]
    outputs: tuple[bytes, ...]
    facts: memory.Facts
    accesses: list[object]


def prepare(launch: Launch, trace: Sequence[records.Record]) -> Prepared:
    """Compile the prepared source and run it as it is."""
    text, found = places.prepared(launch.kernel.text)
    kernel = EmulatedKernel(text, launch.kernel.kernel.name)
    launch = replace(launch, kernel=kernel)
    outputs, own = _traced(launch)
    known = memory.facts(own, launch.spans())
    number = [i for i, before in enumerate(launch.before) if before is not None]
    fresh = tuple(
        i
        for i, written, read in zip(number, known.written, known.read)
        if written.all() and written.size and not read.any()
    )
    launch.run(check=True, fresh=fresh)
    everything = [*mutants.data(trace), *(m for p in found for m in p.mutants())]
    return Prepared(
        launch, everything, fresh, findings(launch), outputs, known, memory.accesses(own)
    )


def _traced(
    launch: Launch, mutate: Sequence[Mutant] = (), kind: int = 0
) -> tuple[tuple[bytes, ...], list[records.Record]]:
    """Outputs and records of a launch without judges; ``kind``: what memory holds before it."""
    records.read()
    poisoned = partial(device.launch, poison=device.Poison(kind))
    with patch.object(device, "launch", poisoned):
        outputs = launch.run(trace=2, mutate=mutate)
    return outputs, records.read()


def judge(base: Prepared, mutant: Mutant) -> Outcome:
    """The verdict on one mutant.

    Not reported and equivalent: the same values by the same accesses. Harmless: the same values,
    other accesses that break no rule of memory. Values only: no rule is broken either, and
    something else is computed, which a reference alone can tell. Survived: the oracle names a rule.
    """
    start = time.perf_counter()
    by = reported(base.launch, base.findings, [mutant], fresh=base.fresh)
    verdict = REPORTED
    if not by:
        verdict, by = _unreported(base, mutant)
    return Outcome(mutant, verdict, by, time.perf_counter() - start)


def _unreported(base: Prepared, mutant: Mutant) -> tuple[str, tuple[str, ...]]:
    try:
        outputs, trace = _traced(base.launch, [mutant])
    except EmulatorError as error:
        return SURVIVED, (f"ends with {error.code} when it is not checked",)
    facts = memory.facts(trace, base.launch.spans())
    rules = memory.broken(base.facts, facts)
    more = memory.undefined(base.facts, facts)
    # Whole registers past the end of a tile are legal: does a value depend on what was there?
    if more and any(_traced(base.launch, [mutant], kind)[0] != outputs for kind in (1, 2)):
        rules = (*rules, more)
    if rules:
        return SURVIVED, rules
    if outputs != base.outputs:
        return VALUES, ()
    return (EQUIVALENT if memory.accesses(trace) == base.accesses else HARMLESS), ()
