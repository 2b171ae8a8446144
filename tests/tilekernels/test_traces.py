"""Every op of the component tells the truth to what traces it: opcheck, torch.compile.

Ops are found in the registry, so one that is added is covered without a word here.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ascendkit.check.correctness import public
from ascendkit.check.tracing import check_traces, traceable
from ascendkit.op import Case, Op
from ascendkit.registry import components
from ascendkit.schema import outputs
from ascendkit.testing.memory import copied, tensors

OPS = [o for o in components()["tilekernels"].ops if o.has("reference") and traceable(o)]


def comparable(t: torch.Tensor) -> bool:
    """Whether opcheck can compare it: elements, none narrow, none NaN or so large that sums are."""
    if not t.is_floating_point():
        return t.numel() > 0
    return t.numel() > 0 and t.itemsize > 1 and bool(t.abs().max() < 1e6)


def smallest(op: Op, seed: int) -> Case:
    """The case with the fewest input elements, among those that show something."""
    legal = {}
    for case in op.cases("smoke"):
        if case.error or case.ranks > 1:
            continue
        args = op.inputs(case, seed)
        if all(map(comparable, tensors(args))):
            legal.setdefault(sum(t.numel() for t in tensors(args)), case)
    return legal[min(legal)]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.stem)
def test_opcheck(op: Op, seed: int) -> None:
    outcome = check_traces(op, smallest(op, seed), seed)
    assert outcome.status == "pass", outcome.message


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.stem)
def test_compiles_into_one_graph(op: Op, seed: int) -> None:
    torch.compiler.reset()
    case = smallest(op, seed)
    function, args = public(op, case), op.inputs(case, seed)

    def call(*given: Any) -> Any:
        return function(*given, platform="reference")

    mine, theirs = copied(args), copied(args)
    want = call(*mine)
    got = torch.compile(call, fullgraph=True, backend="aot_eager")(*theirs)
    pairs = [*zip(outputs(want), outputs(got), strict=True), *zip(tensors(mine), tensors(theirs))]
    assert all(a is b or torch.equal(a, b) for a, b in pairs)


def test_there_are_ops() -> None:
    assert {"topk_gate", "moe_topk_gate", "get_fused_mapping"} <= {o.stem for o in OPS}
