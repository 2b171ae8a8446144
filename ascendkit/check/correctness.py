"""Whether one case of one op is right on one platform.

Right means: the result agrees with the judge by the op's contract; every element of the output was
written and nothing beside it; a second launch on the same buffers gives the same bits (where the
contract says deterministic; the same by the contract elsewhere); inputs are untouched; the caller's
``out`` is what comes back; the emulator's judges have no finding of severity error (unless
``ASCENDKIT_EMULATOR_CHECK=0``). The judge is the reference, and for the reference the op's oracle.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ascendkit.check import oracle
from ascendkit.check.launch import LAUNCHERS
from ascendkit.check.launches import Launches, layout
from ascendkit.check.misuse import refusal
from ascendkit.check.outcome import FAIL, PASS, Finding, Outcome, describe, failed, skipped
from ascendkit.dispatch import DEVICE_OF_PLATFORM
from ascendkit.errors import bad_value
from ascendkit.op import FILE_OF_PLATFORM, Case, Op
from ascendkit.schema import parse
from ascendkit.testing.compare import compare
from ascendkit.testing.draw import sub_seed
from ascendkit.testing.memory import copied
from ascendkit.testing.verdict import Verdict


def check_case(op: Op, platform: str, case: Case, seed: int) -> Outcome:
    """Check one case; whatever the op raises becomes a failed outcome."""
    start = time.perf_counter()
    try:
        found = _check(op, platform, case, sub_seed(seed, op.name, case.name))
        limit = op.contract.limit
    except (Exception, SystemExit) as e:
        found, limit = failed(describe(e)), 0.0
    # A failed verdict is false, so "or" would lose it.
    v = Verdict(True) if found.verdict is None else found.verdict
    return Outcome(
        op.name, platform, case.name, found.status, found.message, found.judge,
        v.measure, v.value, limit, v.mismatches, v.total, v.worst, v.got, v.want,
        found.covered, seed, time.perf_counter() - start,
    )  # fmt: skip


def public(op: Op, case: Case) -> Callable[..., Any]:
    """The op's public function: the attribute of its package named like the folder.

    Where that one mixes outputs into its arguments, as some of upstream do, the package has
    ``in_schema_order(*args, out=..., platform=...)`` beside it, with the arguments of ``SCHEMA``.

    Parameters of the case that the function takes keyword-only (``check_values``, options) are
    bound to it; ``out`` and ``platform`` are the caller's to give.
    """
    module = op.load()
    found = getattr(module, "in_schema_order", getattr(module, op.stem, None))
    if not callable(found):
        raise bad_value(f"op {op.name}", f"no function {op.stem}", "a public function of that name")
    options = {
        p.name: case.params[p.name]
        for p in inspect.signature(found).parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.name in case.params and p.name not in ("out", "platform")
    }
    return functools.partial(found, **options)


def _check(op: Op, platform: str, case: Case, seed: int) -> Finding:
    if case.error:
        args = copied(op.inputs(case, seed), DEVICE_OF_PLATFORM[platform])
        return refusal(public(op, case), case, args, platform)
    support = op.supports(platform, case)
    if not support:
        return skipped(support.reason)
    if platform == "reference" and not oracle.name_of(op):
        return failed(f"nothing judges the reference: {op.name} has no oracle.py")
    if case.ranks > 1:
        return _collective(op, platform, case, seed)
    args = op.inputs(case, seed)
    module, function = op.load(), public(op, case)
    allocate = getattr(module, "allocate", None)
    mine = copied(args, DEVICE_OF_PLATFORM[platform])
    with _judged(platform) as kept:
        # Not inside: a file that imports the op's allocate by name would keep the guarded one.
        op.load(FILE_OF_PLATFORM[platform])
        runs = Launches(function, module, mine, platform)
    judge, judged_by = _judge(op, platform, args)
    verdict = judge(runs.results[0])
    faults = runs.faults(op.contract, verdict, judge)
    faults += kept.errors if kept else []
    if platform == "reference" and allocate is not None:
        # The reference makes its own outputs; traced programs are promised those of allocate.
        told = allocate(*mine)
        faults += filter(None, [layout(function(*mine, platform=platform), told)])
    return _finding(faults, judged_by, verdict, runs.covered)


def _judged(platform: str) -> AbstractContextManager[Any]:
    """Keeps what the emulator's judges find in the block; None on other platforms."""
    if platform != "emulator":
        return nullcontext()
    from ascendkit.emulator.judged import judged

    return judged()


def _judge(op: Op, platform: str, args: tuple[Any, ...]) -> tuple[Callable[[Any], Verdict], str]:
    if platform == "reference":
        return lambda got: oracle.judge(op, args, got), oracle.name_of(op)
    given = copied(args)
    returned = op.load("reference").reference(*given)
    want = parse(getattr(op.load(), "SCHEMA", "")).results(returned, given)
    return lambda got: compare(op.contract, got, want), "reference"


def _collective(op: Op, platform: str, case: Case, seed: int) -> Finding:
    launcher = LAUNCHERS.get(platform)
    if launcher is None:
        return skipped(f"no launcher for {case.ranks} ranks on {platform}")
    per_rank = list(op.inputs(case, seed))
    if len(per_rank) != case.ranks:
        return failed(f"inputs: got {len(per_rank)} tuples, wanted one a rank, {case.ranks}")
    got = launcher(op, copied(per_rank))
    judge, judged_by = _judge(op, platform, (per_rank,))
    verdict = judge(got)
    faults = [] if verdict else [verdict.message]
    if platform == "reference" and op.has("launch"):
        for name, backend in op.load("launch").launchers().items():
            moved = compare(op.contract, backend(op, copied(per_rank)), got)
            faults += [] if moved else [f"backend {name} against the reference: {moved.message}"]
    return _finding(faults, judged_by, verdict, False)


def _finding(faults: Sequence[str], judge: str, verdict: Verdict, covered: bool) -> Finding:
    return Finding(FAIL if faults else PASS, "; ".join(faults), judge, verdict, covered)
