"""The Ascend programs of the gates and of the maps, emulated and judged: every option at once, many
tiles a core, orders of the pipes, random routing, values that ties and infinities make odd."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.op import Case
from ascendkit.registry import op
from ascendkit.testing import bitwise
from ascendkit.testing.memory import copied
from tilekernels.gating import ascend_gate
from tilekernels.moe_topk_gate import ascend as moe
from tilekernels.moe_topk_gate import moe_topk_gate
from tilekernels.moe_topk_gate.cuda import gate_of

CHOSEN = {
    "moe_topk_gate": ("3x513k8-sqrtsoftplus", "11x64k30"),
    "top2_sum_gate": ("19x256k8g8of4-softmax", "7x24k20"),
    "moe_topk_gate_backward": ("18x72k6-softmax", "33x256k8"),
    "topk_sum_and_topk_group_idx": ("21x8x9-2-4-all_equal", "9x31x3"),
    "get_fused_mapping": ("301x1of257", "50x5of6a8-repeats"),
    "reduce_fused": ("6x3x16-w-float16-special", "6x3x16-w8f-bfloat16-special"),
}
"""Beginnings of the names of cases: wide rows, random routing, groups, infinities."""


@pytest.fixture(autouse=True)
def _emulator() -> None:
    state = platforms.available("emulator")
    if not state:
        pytest.skip(f"emulator: {state.reason}")


@pytest.mark.emu
@pytest.mark.parametrize("name", CHOSEN)
def test_chosen_cases_pass(name: str, seed: int) -> None:
    found = op(f"tilekernels.{name}")
    for beginning in CHOSEN[name]:
        case = next(c for c in found.cases("core") if c.name.startswith(beginning))
        outcome = check_case(found, "emulator", case, seed)
        assert outcome.status == "pass", f"{case.name}: {outcome.message}"


@pytest.mark.emu
def test_every_option_in_every_order_of_pipes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from ascendkit import use
    from ascendkit.emulator.judged import judged

    # Two cores walk over four tiles each.
    monkeypatch.setattr(ascend_gate, "vector_cores", lambda tensor: 2)
    kernel = ascend_gate.kernel
    case = every_option(120)
    found = op("tilekernels.moe_topk_gate")
    args = found.inputs(case, seed)
    want = copied(args)
    expected = found.load("reference").reference(*want)
    for replay in (None, 1 + seed % 1000, 2 + seed % 1000):
        mine = copied(args)
        out = (torch.full_like(expected[0], -7), torch.full_like(expected[1], -7.0))
        with use("emulator"), judged() as kept:
            compiled = kernel(gate_of(mine), 2, True)
            launch = partial(compiled, **({} if replay is None else {"replay": replay}))
            monkeypatch.setattr(ascend_gate, "kernel", lambda *_, launch=launch: launch)
            moe.run(*mine, out=out)
        assert not kept.errors
        pairs = zip((*out, mine[14], mine[16]), (*expected, want[14], want[16]))
        assert all(bitwise(got, right) for got, right in pairs), f"replay={replay}"


def every_option(tokens: int) -> Case:
    """A case of moe_topk_gate with all tensors there are."""
    cases = op("tilekernels.moe_topk_gate").cases("smoke")
    case = next(c for c in cases if c.name.startswith("29x72k6"))
    return Case(f"{tokens}x72k6", {**case.params, "num_tokens": tokens})


@pytest.mark.emu
def test_random_experts_are_distinct_and_even(seed: int) -> None:
    tokens, experts, topk = 500, 10, 4
    logits = torch.zeros(tokens, experts)
    every = torch.ones(tokens, dtype=torch.bool)
    args = (logits, topk, False, 0, 1.0, seed)
    idx, weights = moe_topk_gate(*args, force_random=every, platform="emulator")
    want = moe_topk_gate(*args, force_random=every, platform="reference")
    assert torch.equal(idx, want[0]) and bitwise(weights, want[1])
    assert (idx.sort(1).values.diff(dim=1) > 0).all()
    share = torch.bincount(idx.flatten(), minlength=experts) / tokens
    assert (share - topk / experts).abs().max() < 5 * (0.24 / tokens) ** 0.5
