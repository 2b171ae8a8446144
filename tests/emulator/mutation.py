"""The mutation suite: every synchronisation of the corpus wrong once, and who notices.

    python -m tests.emulator.mutation [--kernels add,gemm_l1] [--sample 200] [--out FILE]

A mutant is *reported* when the checked launch raises or leaves a finding that the correct kernel
does not have. One that is not is *equivalent* when the closure (``closure``) of its trace has no
unordered conflict that the correct kernel's has not, and 100 replays in random legal orders leave
the bits that the correct kernel leaves. Everything else *survived*.

Mutants of data (bounds by one, strides, masks, loads left out) are another count: one that changes
values inside what a kernel may touch is no fault of memory, and only a reference can see it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascendkit.emulator import EmulatorError, mutants, records
from ascendkit.emulator.mutants import Mutant
from tests.emulator import closure
from tests.emulator.corpus import Launch, cases, launches

REPLAYS = 100
REPORTED, EQUIVALENT, SURVIVED, VALUES = "reported", "equivalent", "survived", "values only"


@dataclass
class Correct:
    """What the unmutated launch does."""

    launch: Launch
    outputs: tuple[bytes, ...]
    findings: set[tuple[object, ...]]
    conflicts: set[closure.Pair]
    trace: list[records.Record]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant; ``by``: the codes that report it, or what speaks against it."""

    mutant: Mutant
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
        """Reported of those that are not equivalent."""
        known = self.count(REPORTED)
        rest = len(self.outcomes) - self.count(EQUIVALENT)
        return known / rest if rest else 1.0


def correct(launch: Launch) -> Correct:
    """Run the launch as it is: plainly, traced, and checked."""
    outputs = launch.run()
    records.read()
    launch.run(trace=2)
    trace = records.read()
    launch.run(check=True)
    return Correct(launch, outputs, _findings(launch), closure.unordered(trace), trace)


def _findings(launch: Launch) -> set[tuple[object, ...]]:
    found = launch.kernel.findings
    return {(f.code, f.site, f.other_site) for f in found if not f.code.startswith("AK-ADVICE")}


def _reported(base: Correct, mutant: Mutant) -> tuple[str, ...]:
    try:
        base.launch.run(check=True, mutate=[mutant])
    except EmulatorError as error:
        return (error.code,)
    return tuple(sorted({str(f[0]) for f in _findings(base.launch) - base.findings}))


def judge(base: Correct, mutant: Mutant, replays: int = REPLAYS) -> Outcome:
    """The verdict on a mutant of synchronisation."""
    start = time.perf_counter()
    by = _reported(base, mutant)
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


def judge_data(base: Correct, mutant: Mutant) -> Outcome:
    """The verdict on a mutant of bounds, strides, masks or loads."""
    start = time.perf_counter()
    by = _reported(base, mutant)
    verdict = REPORTED
    if not by:
        same = base.launch.run(trace=1, mutate=[mutant]) == base.outputs
        verdict = EQUIVALENT if same else VALUES
    return Outcome(mutant, verdict, by, time.perf_counter() - start)


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


def mutate(
    base: Correct, sync: Sequence[Mutant], data: Sequence[Mutant], replays: int = REPLAYS
) -> dict[str, Score]:
    """Outcomes of all mutants of one launch."""
    return {
        "sync": Score([judge(base, m, replays) for m in sync]),
        "data": Score([judge_data(base, m) for m in data]),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; 1 if a correct kernel has a finding or fewer than 99 % are reported."""
    parser = argparse.ArgumentParser("python -m tests.emulator.mutation", description=__doc__)
    parser.add_argument("--kernels", default="", help="names, comma-separated (default: all)")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each kind in all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--no-data", action="store_true", help="synchronisation only")
    parser.add_argument("--out", type=Path, help="write the outcomes to this JSON-lines file")
    args = parser.parse_args(argv)
    start = time.perf_counter()
    found = corpus([n for n in args.kernels.split(",") if n])
    bases = [correct(launch) for launch in found]
    choose = _sampler(args.sample, args.seed)
    todo = {
        "sync": choose([(b, m) for b in bases for m in mutants.synchronisation(b.trace)]),
        "data": choose([] if args.no_data else [(b, m) for b in bases for m in _data(b)]),
    }
    rows, scores, alarms = [], {"sync": Score(), "data": Score()}, 0
    for number, base in enumerate(bases, 1):
        mine = {kind: [m for b, m in pairs if b is base] for kind, pairs in todo.items()}
        outcomes = mutate(base, mine["sync"], mine["data"])
        for kind, score in outcomes.items():
            scores[kind].outcomes += score.outcomes
        alarms += len(base.findings)
        rows.append(_row(base, outcomes))
        done = {kind: len(score.outcomes) for kind, score in scores.items()}
        survivors = scores["sync"].count(SURVIVED)
        print(
            f"[{number}/{len(bases)}] {base.launch.name}: {done['sync']} of {len(todo['sync'])} "
            f"sync, {done['data']} of {len(todo['data'])} data mutants, {survivors} survivors",
            file=sys.stderr,
            flush=True,
        )
    summary = _summary(bases, scores, alarms, time.perf_counter() - start, args.sample)
    if args.out:
        lines = [json.dumps(row) for row in [*rows, summary]]
        args.out.write_text("\n".join(lines) + "\n")
    print(json.dumps(summary, indent=1))
    return int(alarms > 0 or scores["sync"].share < 0.99)


def _sampler(size: int, seed: int) -> Callable[[list[Any]], list[Any]]:
    def choose(pairs: list[Any]) -> list[Any]:
        return random.Random(seed).sample(pairs, size) if 0 < size < len(pairs) else pairs

    return choose


def _data(base: Correct) -> list[Mutant]:
    return mutants.data(base.trace)


def _row(base: Correct, outcomes: dict[str, Score]) -> dict[str, object]:
    return {
        "record": "emulator_mutants",
        "kernel": base.launch.name,
        "family": base.launch.family,
        "records": len(base.trace),
        "false_alarms": sorted(map(str, base.findings)),
        **{kind: [o.row() for o in score.outcomes] for kind, score in outcomes.items()},
    }


def _summary(
    bases: Sequence[Correct], scores: dict[str, Score], alarms: int, seconds: float, sample: int
) -> dict[str, object]:
    from ascendkit.bench.environment import commit

    families = {b.launch.name: b.launch.family for b in bases}
    sync = scores["sync"].outcomes
    slowest = max((o.seconds for o in sync if o.verdict == REPORTED), default=0.0)
    return {
        "record": "emulator_mutants_summary",
        "commit": commit(),
        "wall_s": round(seconds, 1),
        "sample": sample or "all",
        "kernels": dict(Counter(families.values())),
        "false_alarms": alarms,
        **{
            kind: {
                **{v: s.count(v) for v in (REPORTED, EQUIVALENT, SURVIVED, VALUES) if s.count(v)},
                "reported_share": round(s.share, 5),
            }
            for kind, s in scores.items()
        },
        "by_kind": {
            kind: dict(Counter(o.verdict for o in sync if o.mutant.kind == kind))
            for kind in sorted({o.mutant.kind for o in sync})
        },
        "slowest_reported_s": round(slowest, 3),
        "survivors": [str(o.mutant) for o in sync if o.verdict == SURVIVED],
    }


if __name__ == "__main__":
    raise SystemExit(main())
