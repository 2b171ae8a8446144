"""``python -m ascendkit.check``: is every op right here, and how fast against the limit.

Keys and choices: ``--help``, or ``configs/check.yaml``.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from ascendkit.check.bandwidth import Measured, measure_case
from ascendkit.check.outcome import FAIL, SKIP, Outcome
from ascendkit.check.plan import Plan, make
from ascendkit.cli import compose, run
from ascendkit.errors import bad_value


def main(argv: list[str]) -> int:
    """Run the loops; 0 all passed, 1 a case failed or none ran."""
    config = compose("check", argv)
    seed = _seed(config["seed"])
    file = _record_file(config["record"])
    plan = make(*(config[k] for k in ("component", "op", "platform", "level", "loop")))
    code, outcomes = _run(plan, seed, file, config["output"])
    if file is not None:
        _book(file, outcomes, config["level"], seed, argv)
    return code


def _book(file: Path, outcomes: list[Outcome], level: str, seed: int, argv: list[str]) -> None:
    """How many cases passed, beside the records of what was timed."""
    from ascendkit.bench.environment import commit, device_name
    from ascendkit.check.tally import append, tallies
    from ascendkit.dispatch import DEVICE_OF_PLATFORM

    ran = {o.platform for o in outcomes} & set(DEVICE_OF_PLATFORM)
    devices = {p: device_name(DEVICE_OF_PLATFORM[p]) for p in ran}
    command = " ".join(["python -m ascendkit.check", *argv])
    append(file, tallies(outcomes, level, seed, devices, commit(), command))


def _run(plan: Plan, seed: int, file: Path | None, output: str) -> tuple[int, list[Outcome]]:
    from ascendkit.bench import Ceilings, append
    from ascendkit.check import report
    from ascendkit.check.correctness import check_case
    from ascendkit.check.tracing import check_traces
    from ascendkit.dispatch import DEVICE_OF_PLATFORM

    outcomes: list[Outcome] = list(plan.broken)
    measured: list[Measured] = []
    ceilings = {p: Ceilings(DEVICE_OF_PLATFORM[p]) for p in plan.platforms}
    total = len(plan.correctness) + len(plan.traces) + len(plan.bandwidth)
    # What an op prints must not end up among the records.
    with redirect_stdout(sys.stderr), report.progress(total) as step:
        for job in plan.correctness:
            step(f"{job.op.name} on {job.platform}: {job.case.name}")
            outcomes.append(check_case(job.op, job.platform, job.case, seed))
        for job in plan.traces:
            step(f"tracing {job.op.name}")
            outcomes.append(check_traces(job.op, job.case, seed))
        for job in plan.bandwidth:
            step(f"timing {job.op.name} on {job.platform}: {job.case.name}")
            one = measure_case(job.op, job.platform, job.case, seed, ceilings[job.platform])
            measured.append(one)
            if file is not None and one.record is not None:
                append(file, one.record)
    failed = any(o.status == FAIL for o in outcomes)
    failed |= any(m.record is None and not m.skipped for m in measured)
    ran = any(o.status != SKIP for o in outcomes) or any(not m.skipped for m in measured)
    code = int(failed or not ran)
    show = report.as_json if output == "json" else report.as_table
    show(plan, outcomes, measured, seed, code)
    return code, outcomes


def _seed(given: Any) -> int:
    """The run's seed: given, else of ASCENDKIT_SEED, else fresh."""
    text = os.environ.get("ASCENDKIT_SEED") if given is None else str(given)
    if not text:
        return secrets.randbits(31)
    try:
        return int(text)
    except ValueError:
        raise bad_value("seed", text, "an integer") from None


def _record_file(name: Any) -> Path | None:
    """A new file under ``results``: one file a run."""
    if name is None:
        return None
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", str(name)):
        nearest = re.sub(r"[^A-Za-z0-9._-]+", "-", str(name)).strip("-.") or "run"
        raise bad_value("record", name, "a plain file name", nearest)
    path = Path("results", f"{str(name).removesuffix('.jsonl')}.jsonl")
    if path.exists():
        raise bad_value("record", name, f"a new name: {path} exists", f"{path.stem}-2")
    return path


if __name__ == "__main__":
    run(main)
