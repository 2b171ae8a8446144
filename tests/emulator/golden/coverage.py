"""What the goldens cover: every entry of the instruction table, executed, its output asserted.

``python -m tests.emulator.golden.coverage`` writes ``results/emulator_coverage.json``.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ascendkit.emulator import emittable
from ascendkit.emulator.instructions import table
from tests.emulator.golden.case import run
from tests.emulator.golden.families import FAMILIES, bank
from tests.emulator.golden.programs import PROGRAMS
from tests.emulator.harness import counts

REPORT = Path(__file__).parents[3] / "results" / "emulator_coverage.json"
SEED = 950


@dataclass(frozen=True)
class Row:
    """One instruction.

    Attributes:
        name, group, confidence: of the instruction table.
        emittable: TileLang 0.1.15 can print its symbol.
        goldens: cases or checks whose asserted output depends on it.
        executed: the instrumented build counted it while they ran; None where it has no counter (a
            function of the C library, an identity), so that the asserted output alone shows it.
        right: those that ran here agreed with the oracle.
    """

    name: str
    group: str
    confidence: str
    emittable: bool
    goldens: int
    executed: bool | None
    right: bool


def goldens() -> Counter[str]:
    """How many goldens each name has."""
    found = Counter(case.name for cases in FAMILIES.values() for case in cases)
    for checks in PROGRAMS.values():
        found.update(name for check in checks for name in check.names)
    return found


def measure() -> list[Row]:
    """Runs goldens of every name in this process and reads the counters.

    Of the cases of one vector instruction the first two: the others differ in type or control.
    """
    before, wrong = counts(), set()
    counted: dict[str, bool] = {}
    for family, cases in FAMILIES.items():
        rng = np.random.default_rng(SEED)
        seen: Counter[str] = Counter()
        for which, case in enumerate(cases):
            seen[case.name] += 1
            if seen[case.name] > 2:
                continue
            takes, held = case.inputs(rng)
            if run(bank(family), which, case, takes, held, case.scalar_sets(rng)[0]):
                wrong.add(case.name)
            counted[case.name] = True
    for checks in PROGRAMS.values():
        for check in checks:
            if check.run(np.random.default_rng(SEED), 0):
                wrong.update(check.names)
            counted.update(dict.fromkeys(check.names, check.hooked))
    after, number, printable = counts(), goldens(), emittable.all_names()
    return [
        Row(
            name=one.name,
            group=one.group,
            confidence=one.confidence,
            emittable=one.symbol in printable,
            goldens=number[one.name],
            executed=(after.get(one.name, 0) > before.get(one.name, 0))
            if counted.get(one.name, True)
            else None,
            right=one.name not in wrong,
        )
        for one in table().values()
    ]


def report(rows: list[Row]) -> str:
    """The rows and their totals as JSON."""
    done = [r for r in rows if r.goldens and r.right and r.executed is not False]
    symbols = {one.symbol for one in table().values()}
    asserted = {table()[r.name].symbol for r in done}
    printable = emittable.all_names()
    totals = {
        "instructions": len(rows),
        "with_asserted_output": len(done),
        "goldens": sum(r.goldens for r in rows),
        "emittable_names": len(printable),
        "emittable_implemented": len(printable & symbols),
        "emittable_with_asserted_output": len(printable & asserted),
        "confidence": dict(sorted(Counter(r.confidence for r in rows).items())),
    }
    body = ",\n".join(f"    {json.dumps(asdict(r))}" for r in rows)
    return f'{{\n  "totals": {json.dumps(totals)},\n  "instructions": [\n{body}\n  ]\n}}\n'


if __name__ == "__main__":
    REPORT.write_text(report(measure()))
