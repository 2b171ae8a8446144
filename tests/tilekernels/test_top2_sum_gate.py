"""top2_sum_gate: the registry loop, and the CUDA program with groups on this CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ascendkit.check.correctness import check_case
from ascendkit.registry import op
from ascendkit.testing import bitwise
from ascendkit.testing.memory import copied
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.gating import cuda_gate
from tilekernels.gating.cuda_select import PASSES
from tilekernels.top2_sum_gate import cuda

GATE = op("tilekernels.top2_sum_gate")


def test_reference_passes_every_case(seed: int) -> None:
    outcomes = [check_case(GATE, "reference", c, seed) for c in GATE.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.parametrize("which", ["19x256k8g8of4-sigmoid", "17x36k6g4of2", "9x64k6g8of2-softmax"])
def test_cuda_program_on_this_cpu(which: str, seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    case = next(c for c in GATE.cases("core") if c.name.startswith(which))
    args = GATE.inputs(case, seed)
    mine = copied(args)
    gate = cuda.gate_of(args)
    layout = cuda_gate.plan(gate, 9999)
    model = Model(lower(cuda_gate.prim_func(gate, layout), **PASSES), tmp_path)
    want = GATE.load("reference").reference(*args)
    idx, weights = (torch.full_like(t, -7) for t in want)
    mask, fixed, physical, count, unmapped = mine[13:]
    model(
        -(-len(mine[0]) // (32 // layout.lanes * layout.warps)), seed, logits=mine[0], bias=mine[1],
        mask=mask, fix_routing_mask=fixed, to_physical_map=physical, logical_count=count,
        unmapped=unmapped, topk_idx=idx, topk_weights=weights, scale=1.5, ep_rank=1,
        per=cuda.experts_per_rank(args), tp_rank=mine[10], num_tp=mine[11],
        num_tokens=len(mine[0]), unmapped_stride=unmapped.stride(0),
    )  # fmt: skip
    for got, expected in ((idx, want[0]), (weights, want[1]), (unmapped, args[17])):
        assert bitwise(got, expected)
