"""moe_topk_gate: the registry loop, its gradient, random routing, and the CUDA program on a CPU."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.philox import philox
from ascendkit.registry import op
from ascendkit.testing import bitwise, generator, normal
from ascendkit.testing.memory import copied
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.gating import SCORING, cuda_gate
from tilekernels.gating.cuda_select import PASSES
from tilekernels.gating.routing import at_random, physical
from tilekernels.gating.rules import exact_scores
from tilekernels.gating.scoring import exp, score
from tilekernels.moe_topk_gate import cuda, moe_topk_gate
from tilekernels.moe_topk_gate_backward import moe_topk_gate_backward
from tilekernels.top2_sum_gate import top2_sum_gate

GATE = op("tilekernels.moe_topk_gate")
NAMES = ("logits", "mask", "bias", "image_bias", "image_token_mask", "fix_routing_mask")
TAIL = ("to_physical_map", "logical_count", "unmapped", "force_random", "scores")


def test_reference_passes_every_case(seed: int) -> None:
    outcomes = [check_case(GATE, "reference", c, seed) for c in GATE.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.cuda
def test_cuda_passes_every_case(seed: int) -> None:
    if not platforms.available("cuda"):
        pytest.skip("no CUDA device")
    outcomes = [check_case(GATE, "cuda", c, seed) for c in GATE.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


def test_cuda_program_on_this_cpu(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    legal = [c for c in GATE.cases("core") if not c.error and c.params["num_tokens"]]
    small = [c for c in legal if c.params["num_experts"] <= 300]
    together = [c for c in small if len(c.params["options"]) == 7]
    for i, case in enumerate((*together, *random.Random(seed).sample(small, 2))):
        args = GATE.inputs(case, seed)
        mine = copied(args)
        gate = cuda.gate_of(args)
        layout = cuda_gate.plan(gate, 9999)
        model = Model(lower(cuda_gate.prim_func(gate, layout), **PASSES), tmp_path / str(i))
        want = GATE.load("reference").reference(*args)
        idx, weights = (torch.full_like(t, -7) for t in want)
        logits, _, _, _, scale, ep_rank, _, *rest = mine
        given = dict(zip((*NAMES[1:], *TAIL), rest))
        tokens, unmapped = len(logits), given["unmapped"]
        model(
            -(-tokens // (32 // layout.lanes * layout.warps)), seed, logits=logits, **given,
            topk_idx=idx, topk_weights=weights, scale=scale, ep_rank=ep_rank, per=1, tp_rank=0,
            num_tp=1, num_tokens=tokens,
            unmapped_stride=0 if unmapped is None else unmapped.stride(0),
        )  # fmt: skip
        pairs = [
            (idx, want[0]),
            (weights, want[1]),
            (unmapped, args[14]),
            (given["scores"], args[16]),
        ]
        for got, expected in pairs:
            if got is not None:
                assert bitwise(got, expected), case.name


@pytest.mark.parametrize("scoring", SCORING)
def test_scores_are_within_three_units_of_exact_ones(scoring: str, seed: int) -> None:
    x = normal((40, 512), generator(seed)) * (1.0 if scoring == "softmax" else 20.0)
    got, _ = score(x, scoring)
    want = torch.stack([torch.from_numpy(exact_scores(r, scoring)) for r in x.numpy()])
    limit = 16 if scoring == "softmax" else 3
    assert ((got.double() - want).abs() <= limit * 2.0**-23 * want + 2e-38).all()


def test_exponential_stays_in_range() -> None:
    y = torch.tensor([0.0, -87.0, -87.01, -1e30])
    assert exp(y)[0] == 1 and exp(y)[1] > 2.0**-126 and not exp(y)[2:].any()


@pytest.mark.parametrize("scoring", SCORING)
def test_gradient(scoring: str, seed: int) -> None:
    g = generator(seed)
    x, fixed = normal((6, 24), g), torch.randint(-1, 24, (6, 5), generator=g)
    every = torch.ones(6, dtype=torch.bool)
    grad = normal((6, 6), g)
    mine = x.clone().requires_grad_()
    options = {"fix_routing_mask": every, "unmapped_topk_idx": fixed.clone()}
    _, weights = moe_topk_gate(mine, 5, True, 1, 1.5, 0, scoring, **options)
    weights.backward(grad)
    exact = x.double().requires_grad_()
    u = {
        "sqrtsoftplus": lambda v: torch.nn.functional.softplus(v).sqrt(),
        "sigmoid": torch.sigmoid,
        "softmax": lambda v: v.softmax(-1),
    }[scoring](exact)
    chosen = u.gather(1, fixed.clamp(min=0)) * (fixed >= 0)
    (1.5 * chosen / (chosen.sum(1, keepdim=True) + 1e-20)).backward(grad[:, :5].double())
    assert mine.grad is not None and exact.grad is not None
    assert torch.allclose(mine.grad.double(), exact.grad, rtol=1e-4, atol=1e-6)


def test_random_experts_are_distinct_and_even() -> None:
    idx, weights = at_random(20_000, 4, 3, 10)
    assert all(len(set(row)) == 4 for row in idx[:500].tolist())
    # Every expert is in 4 of 10 rows; five standard deviations of a binomial count.
    share = torch.bincount(idx.flatten(), minlength=10) / 20_000
    assert (share - 0.4).abs().max() < 5 * (0.24 / 20_000) ** 0.5
    assert abs(float(weights.mean()) - 0.5) < 5 * (1 / 12 / 80_000) ** 0.5


def test_philox_vector() -> None:
    # Counter and key of zeros, as published with the generator.
    words = [int(w) for w in philox(0, torch.tensor(0))]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_physical_index_beyond_32_bits() -> None:
    table, count = torch.arange(7, dtype=torch.int32).view(1, 7), torch.tensor([7])
    got = physical(torch.zeros(92_040, 1, dtype=torch.int64), 5, table, count)
    assert int(got[92_039, 0]) == (5 + 92_039 * 23_333) % 7


@pytest.mark.parametrize("scale", [1e300, -(10**400), float("inf"), float("nan")])
def test_the_factor_is_a_finite_float32(scale: float) -> None:
    x, bias = torch.randn(2, 8), torch.zeros(8)
    idx = torch.tensor([[0, 1], [2, 3]])
    calls = (
        lambda: moe_topk_gate(x, 2, False, 0, scale, 0),
        lambda: top2_sum_gate(x, bias, 2, 0, 0, False, 0, scale, 0, 1, 0, 1, "sigmoid"),
        lambda: moe_topk_gate_backward(x, idx, x[:, :2].clone(), x[:, :2].clone(), scale),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"routed_scaling_factor.*a finite float32"):
            call()


def test_the_number_of_shared_experts_is_an_int_also_where_unused() -> None:
    with pytest.raises(TypeError, match="num_shared_experts: got str, wanted an int"):
        moe_topk_gate(torch.randn(2, 8), 2, False, "x", 1.0, 0)


def test_scores_are_written_apart_from_logits() -> None:
    x = torch.randn(2, 8)
    with pytest.raises(ValueError, match="scores: got 'memory of logits'"):
        moe_topk_gate(x, 2, False, 0, 1.0, 0, scores=x)
