"""What a correct launch does, and what became of a mutant of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ascendkit.emulator import EmulatorError, records
from ascendkit.emulator.mutants import Mutant
from tests.emulator.corpus import Launch
from tests.emulator.mutation import closure

REPORTED, EQUIVALENT, SURVIVED = "reported", "equivalent", "survived"
HARMLESS, VALUES = "harmless", "values only"
VERDICTS = (REPORTED, EQUIVALENT, HARMLESS, VALUES, SURVIVED)
Seen = tuple[object, ...]


@dataclass
class Correct:
    """What the unmutated launch does."""

    launch: Launch
    outputs: tuple[bytes, ...]
    findings: set[Seen]
    conflicts: set[closure.Pair]
    trace: list[records.Record]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant; ``by``: the codes that report it, or what speaks against it."""

    mutant: object
    verdict: str
    by: tuple[str, ...]
    seconds: float

    def row(self) -> list[object]:
        """For the record file."""
        return [str(self.mutant), self.verdict, *self.by]


@dataclass
class Score:
    """Outcomes of one kind of mutants."""

    outcomes: list[Outcome] = field(default_factory=list)

    def count(self, verdict: str) -> int:
        """How many ended so."""
        return sum(o.verdict == verdict for o in self.outcomes)

    @property
    def share(self) -> float:
        """Reported of those that break a rule."""
        known, missed = self.count(REPORTED), self.count(SURVIVED)
        return known / (known + missed) if known + missed else 1.0


def correct(launch: Launch) -> Correct:
    """Run the launch as it is: plainly, traced, and checked."""
    outputs = launch.run()
    records.read()
    launch.run(trace=2)
    trace = records.read()
    launch.run(check=True)
    return Correct(launch, outputs, findings(launch), closure.unordered(trace), trace)


def findings(launch: Launch) -> set[Seen]:
    """Of the last launch."""
    found = launch.kernel.findings
    return {(f.code, f.site, f.other_site) for f in found if not f.code.startswith("AK-ADVICE")}


def reported(
    launch: Launch, known: set[Seen], mutate: Sequence[Mutant], *, fresh: Sequence[int] = ()
) -> tuple[str, ...]:
    """The codes that report a mutant and not the correct launch."""
    try:
        launch.run(check=True, mutate=mutate, fresh=fresh)
    except EmulatorError as error:
        return (error.code,)
    return tuple(sorted({str(f[0]) for f in findings(launch) - known}))
