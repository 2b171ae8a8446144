"""``python -m tests.emulator.mutation``: the suite over the corpus, and its record file."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascendkit.emulator import mutants
from tests.emulator.corpus import Launch
from tests.emulator.mutation import (
    REPORTED,
    SURVIVED,
    Outcome,
    Score,
    capacity,
    corpus,
    correct,
    data,
    judge,
)
from tests.emulator.mutation.outcome import VERDICTS

KINDS = ("sync", "data", "capacity")


@dataclass
class Done:
    """One launch: its outcomes by kind, and what the judges say of the correct kernel."""

    launch: Launch
    records: int
    scores: dict[str, Score]
    alarms: list[str] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        """For the record file."""
        return {
            "record": "emulator_mutants",
            "kernel": self.launch.name,
            "family": self.launch.family,
            "records": self.records,
            "false_alarms": self.alarms,
            **{kind: [o.row() for o in score.outcomes] for kind, score in self.scores.items()},
        }


def one(launch: Launch, kinds: Sequence[str], keep: Keep) -> Done:
    """All mutants of one launch that ``keep`` chooses."""
    base = correct(launch)
    done = Done(launch, len(base.trace), {}, sorted(map(str, base.findings)))
    if "sync" in kinds:
        chosen = keep(mutants.synchronisation(base.trace))
        done.scores["sync"] = Score([judge(base, m) for m in chosen])
    if "data" in kinds:
        prepared = data.prepare(launch, base.trace)
        done.alarms += sorted(map(str, prepared.findings - base.findings))
        done.scores["data"] = Score([data.judge(prepared, m) for m in keep(prepared.mutants)])
    if "capacity" in kinds and launch.function is not None:
        if not capacity.fits_as_it_is(launch):
            done.alarms.append("does not fit as it is")
        chosen = keep(capacity.mutants(launch))
        done.scores["capacity"] = Score([capacity.judge(launch, m) for m in chosen])
    return done


@dataclass
class Keep:
    """Which mutants are run: all, or about ``share`` of them."""

    share: float
    random: random.Random

    def __call__(self, found: Sequence[Any]) -> list[Any]:
        return [m for m in found if self.share >= 1 or self.random.random() < self.share]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; 1 if a correct kernel has a finding or fewer than 99 % are reported."""
    parser = argparse.ArgumentParser("python -m tests.emulator.mutation")
    parser.add_argument("--kernels", default="", help="names, comma-separated (default: all)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--no-data", action="store_true", help="--kinds sync")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--out", type=Path, help="write the outcomes to this JSON-lines file")
    args = parser.parse_args(argv)
    kinds = ["sync"] if args.no_data else args.kinds.split(",")
    if not set(kinds) <= set(KINDS):
        parser.error(f"--kinds: got {args.kinds}, wanted some of {', '.join(KINDS)}")
    start = time.perf_counter()
    keep = Keep(args.share, random.Random(args.seed))
    found = corpus([n for n in args.kernels.split(",") if n])
    all_done = []
    for number, launch in enumerate(found, 1):
        all_done.append(one(launch, kinds, keep))
        counts = ", ".join(f"{len(s.outcomes)} {k}" for k, s in all_done[-1].scores.items())
        missed = sum(s.count(SURVIVED) for s in all_done[-1].scores.values())
        text = f"[{number}/{len(found)}] {launch.name}: {counts} mutants, {missed} survived"
        print(text, file=sys.stderr, flush=True)
    summary = _summary(all_done, kinds, time.perf_counter() - start, args.share)
    if args.out:
        lines = [json.dumps(row) for row in [*(d.row() for d in all_done), summary]]
        args.out.write_text("\n".join(lines) + "\n")
    print(json.dumps(summary, indent=1))
    shares = [summary[kind]["reported_share"] for kind in kinds]
    return int(summary["false_alarms"] > 0 or min(shares) < 0.99)


def _summary(
    done: Sequence[Done], kinds: Sequence[str], seconds: float, share: float
) -> dict[str, Any]:
    from ascendkit.bench.environment import commit

    scores = {
        kind: Score([o for d in done for o in d.scores.get(kind, Score()).outcomes])
        for kind in kinds
    }
    reported = [o.seconds for s in scores.values() for o in s.outcomes if o.verdict == REPORTED]
    return {
        "record": "emulator_mutants_summary",
        "commit": commit(),
        "command": f"python -m tests.emulator.mutation --kinds {','.join(kinds)}",
        "wall_s": round(seconds, 1),
        "share": share,
        "kernels": dict(Counter(d.launch.family for d in done)),
        "functions": sum(d.launch.function is not None for d in done),
        "false_alarms": sum(len(d.alarms) for d in done),
        **{
            kind: {
                "mutants": len(s.outcomes),
                **{v: s.count(v) for v in VERDICTS if s.count(v)},
                "reported_share": round(s.share, 5),
            }
            for kind, s in scores.items()
        },
        "by_kind": {kind: _by(s.outcomes) for kind, s in scores.items()},
        "slowest_reported_s": round(max(reported, default=0.0), 3),
        "survivors": [
            [d.launch.name, *o.row()]
            for d in done
            for s in d.scores.values()
            for o in s.outcomes
            if o.verdict == SURVIVED
        ],
    }


def _by(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Verdicts by what the mutant does."""
    found: dict[str, Counter[str]] = {}
    for o in outcomes:
        found.setdefault(_what(o.mutant), Counter())[o.verdict] += 1
    return {what: dict(found[what]) for what in sorted(found)}


def _what(mutant: Any) -> str:
    if isinstance(mutant, capacity.Growth):
        return "rows" if mutant.rows else "versions"
    return mutant.op.split(" of line")[0] if mutant.kind == "shift" else str(mutant.kind)


if __name__ == "__main__":
    raise SystemExit(main())
