"""moe_topk_gate_backward: the registry loop, gradients against autograd in float64, training, and
the CUDA text on a CPU."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from ascendkit import platform as platforms
from ascendkit.check.correctness import check_case
from ascendkit.registry import op
from ascendkit.testing import bitwise, generator, normal
from tests.tilekernels.cuda_model import Model, lower
from tilekernels.gating import SCORING
from tilekernels.machine import grain
from tilekernels.moe_topk_gate import moe_topk_gate
from tilekernels.moe_topk_gate_backward import cuda_program, moe_topk_gate_backward
from tilekernels.moe_topk_gate_backward.slope import slope

BACKWARD = op("tilekernels.moe_topk_gate_backward")


def test_reference_passes_every_case(seed: int) -> None:
    outcomes = [check_case(BACKWARD, "reference", c, seed) for c in BACKWARD.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


@pytest.mark.cuda
def test_cuda_passes_every_case(seed: int) -> None:
    if not platforms.available("cuda"):
        pytest.skip("no CUDA device")
    outcomes = [check_case(BACKWARD, "cuda", c, seed) for c in BACKWARD.cases("core")]
    assert not [f"{o.case}: {o.message}" for o in outcomes if o.status == "fail"]


def test_cuda_text_on_this_cpu(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("tilelang")
    options = {"TL_DISABLE_THREAD_STORAGE_SYNC": True, "TL_DISABLE_SAFE_MEMORY_ACCESS": True}
    legal = [c for c in BACKWARD.cases("core") if not c.error and c.params["num_tokens"]]
    small = [c for c in legal if c.params["num_experts"] <= 520]
    for i, case in enumerate(random.Random(seed).sample(small, 2)):
        scores, idx, weights, grad, scale, scoring, mask, h = args = BACKWARD.inputs(case, seed)
        want = BACKWARD.load("reference").reference(*args)
        (tokens, experts), out = scores.shape, torch.full_like(want, -7)
        width = grain(4 * experts) // 4
        slots = weights.shape[1], grad.shape[1]
        form = cuda_program.Form(experts, idx.shape[1], *slots, scoring, h is not None, width)
        model = Model(lower(cuda_program.prim_func(form), **options), tmp_path / str(i))
        sequences = 0 if h is None else len(h)
        model(
            -(-tokens // form.warps), seed, scores=scores, topk_idx=idx, weights=weights,
            grad=grad, mask=mask, grad_sum=h, out=out, scale=scale, num_tokens=tokens,
            per_sequence=tokens // max(sequences, 1), num_sequences=sequences,
        )  # fmt: skip
        assert bitwise(out, want), case.name


def exact_scores(x: torch.Tensor, scoring: str) -> torch.Tensor:
    """Of float64 logits, by torch."""
    if scoring == "softmax":
        return x.softmax(-1)
    return x.sigmoid() if scoring == "sigmoid" else torch.nn.functional.softplus(x).sqrt()


@pytest.mark.parametrize("scoring", SCORING)
def test_gradient_with_the_auxiliary_loss_is_that_of_autograd(scoring: str, seed: int) -> None:
    """Of a loss over weights and, for every sequence, over the normalized scores of its tokens."""
    g, tokens, experts, topk, sequences = generator(seed), 12, 24, 5, 3
    x = normal((tokens, experts), g) * 2
    fixed = torch.randint(-1, experts, (tokens, topk), generator=g)
    seen = torch.rand(tokens, generator=g) < 0.7
    grad, h = normal((tokens, topk), g), normal((sequences, experts), g)
    scores, every = torch.empty_like(x), torch.ones(tokens, dtype=torch.bool)
    options = {"fix_routing_mask": every, "unmapped_topk_idx": fixed.clone(), "scores": scores}
    _, weights = moe_topk_gate(x, topk, False, 0, 1.5, 0, scoring, **options)
    got = moe_topk_gate_backward(scores, fixed, weights, grad, 1.5, scoring, seen, h)

    exact = x.double().requires_grad_()
    u = exact_scores(exact, scoring)
    chosen = u.gather(1, fixed.clamp(min=0)) * (fixed >= 0)
    loss = (1.5 * chosen / (chosen.sum(1, keepdim=True) + 1e-20) * grad.double()).sum()
    share = (u / u.sum(1, keepdim=True) * seen[:, None]).view(sequences, -1, experts).sum(1)
    (loss + (share * h.double()).sum()).backward()
    assert exact.grad is not None
    assert torch.allclose(got.double(), exact.grad, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("scoring", SCORING)
def test_gate_trains(scoring: str, seed: int) -> None:
    """Weights move towards wanted ones by gradient descent, and no second derivative is given."""
    g = generator(seed)
    x = normal((8, 16), g).requires_grad_()
    fixed = torch.stack([torch.randperm(16, generator=g)[:4] for _ in range(8)])
    every = torch.ones(8, dtype=torch.bool)
    want = torch.tensor([0.4, 0.3, 0.2, 0.1])

    def loss() -> torch.Tensor:
        options = {"fix_routing_mask": every, "unmapped_topk_idx": fixed.clone()}
        _, weights = moe_topk_gate(x, 4, False, 0, 1.0, 0, scoring, **options)
        return (weights - want).square().sum()

    descent = torch.optim.Adam([x], lr=0.1)
    first = loss().item()
    for _ in range(60):
        descent.zero_grad()
        loss().backward()
        descent.step()
    assert loss().item() < 0.05 * first
    (slope_of_loss,) = torch.autograd.grad(loss(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope_of_loss.sum().backward()


def test_training_compiles_into_one_graph(seed: int) -> None:
    torch.compiler.reset()
    x = normal((5, 16), generator(seed)).requires_grad_()

    def loss(logits: torch.Tensor) -> torch.Tensor:
        _, weights = moe_topk_gate(logits, 4, False, 0, 1.5, 0, "sigmoid")
        return (weights * torch.arange(4.0)).sum()

    (want,) = torch.autograd.grad(loss(x), x)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    (got,) = torch.autograd.grad(compiled(x), x)
    assert torch.equal(got, want)


def test_derivative_of_sqrt_softplus_is_within_four_units_of_exact(seed: int) -> None:
    y = torch.rand(20_000, generator=generator(seed)) * 3
    y = torch.cat([y, y * 1e-3, y * 1e-20, y * 1e18, torch.tensor([1.0, 0.99999994, 9.4])])
    exact = y.double()
    want = -torch.expm1(-exact * exact) / (2 * exact)
    assert ((slope(y).double() - want).abs() <= 4 * 2.0**-23 * want).all()
    assert slope(torch.zeros(1)).item() == 0


def test_tokens_without_scores_have_no_auxiliary_gradient() -> None:
    scores, idx = torch.zeros(2, 8), torch.full((2, 2), -1)
    weights, seen, h = torch.zeros(2, 2), torch.ones(2, dtype=torch.bool), torch.ones(1, 8)
    for scoring in SCORING:
        got = moe_topk_gate_backward(scores, idx, weights, weights, 1.0, scoring, seen, h)
        assert not got.any()
