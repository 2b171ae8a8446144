"""Whether an op tells the truth to what traces it: ``torch.compile``, fake tensors, autograd.

``torch.library.opcheck`` holds the registration against a real call: the schema against what is
mutated and aliased, the op's ``allocate`` against the outputs' shapes, dtypes and strides (with
symbolic sizes too), and the compiled call against the eager one.
"""

from __future__ import annotations

import inspect
import time
from typing import Any

from ascendkit import library
from ascendkit.check.outcome import FAIL, PASS, Outcome, describe
from ascendkit.op import Case, Op
from ascendkit.schema import outputs
from ascendkit.testing.draw import sub_seed
from ascendkit.testing.memory import copied

NAME = "(torch.library)"
JUDGE = "torch.library.opcheck"


def traceable(op: Op) -> bool:
    """Whether the op registers itself: it has a SCHEMA. Never raises: a broken op says no."""
    try:
        return bool(getattr(op.load(), "SCHEMA", ""))
    except (Exception, SystemExit):
        return False


def check_traces(op: Op, case: Case, seed: int) -> Outcome:
    """Check both registrations of ``op`` (functional, ``out=``) on the inputs of ``case``."""
    import torch

    start = time.perf_counter()
    status, message = PASS, ""
    try:
        module = op.load()
        args = _complete(module, op.inputs(case, sub_seed(seed, op.name, case.name)))
        calls: list[tuple[Any, tuple[Any, ...]]] = [(library.functional(op.name), args)]
        if library.has_outputs(op.name):
            out = outputs(module.allocate(*args))
            calls.append((library.mutating(op.name), (*args, *out)))
        for registered, given in calls:
            torch.library.opcheck(registered, (*copied(given), "reference"))
    except (Exception, SystemExit) as e:
        status, message = FAIL, describe(e)
    seconds = time.perf_counter() - start
    return Outcome(op.name, "reference", NAME, status, message, JUDGE, seed=seed, seconds=seconds)


def _complete(module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args`` and the defaults of ``allocate``: a registered op takes its whole schema."""
    bound = inspect.signature(module.allocate).bind(*args)
    bound.apply_defaults()
    return bound.args
