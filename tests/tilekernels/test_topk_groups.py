"""topk_sum_and_topk_group_idx: the registry loop, and the CUDA text on this CPU."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.registry import op
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.machine import grain
from tilekernels.topk_sum_and_topk_group_idx import cuda

GROUPS = op("tilekernels.topk_sum_and_topk_group_idx")


def test_reference_passes_every_case(seed: int) -> None:
    outcomes = [check_case(GROUPS, "reference", c, seed) for c in GROUPS.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.cuda
def test_cuda_passes_every_case(seed: int) -> None:
    if not platforms.available("cuda"):
        pytest.skip("no CUDA device")
    outcomes = [check_case(GROUPS, "cuda", c, seed) for c in GROUPS.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.parametrize("staged", [True, False])
def test_cuda_text_on_this_cpu(
    staged: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tilelang")
    if not staged:
        monkeypatch.setattr(cuda, "MAX_SHARED", 0)
    legal = [c for c in GROUPS.cases("core") if not c.error and c.params["num_tokens"]]
    for i, case in enumerate(random.Random(seed).sample(legal, 2 if staged else 1)):
        x, top, keep = GROUPS.inputs(case, seed)
        tokens, groups, per_group = x.shape
        form = cuda.Form(groups, per_group, top, keep, grain(x.nbytes) // 4)
        options = {"TL_DISABLE_SAFE_MEMORY_ACCESS": True}
        model = Model(lower(cuda.prim_func(form), **options), tmp_path / str(i))
        want = GROUPS.load("reference").reference(x, top, keep)
        got = torch.full_like(want, -7)
        blocks = -(-tokens // cuda.tokens_per_block(groups))
        model(blocks, seed, scores=x, out=got, num_tokens=tokens, num_scores=x.numel())
        assert torch.equal(got, want), case.name
