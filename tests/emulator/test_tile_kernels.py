"""A peer's kernels, unmodified: tile-kernels 2.1.0, moe/ and quant/, against its torch references.

Where the package compares bitwise so do we; sums of floats in another order get a tolerance.
"""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("tile_kernels", reason="make environment brings tile-kernels 2.1.0")

from ascendkit.emulator.judged import judged
from tests.emulator.peer import tile_kernels

pytestmark = pytest.mark.emu


@pytest.fixture(scope="module")
def tk():
    with tile_kernels() as found:
        yield found


@pytest.fixture(autouse=True)
def no_finding():
    with judged() as kept:
        yield
    assert not kept.errors


@pytest.fixture
def draw(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype)

    return normal


def bits(x):
    return x.contiguous().flatten().view(torch.uint8)


def same(got, want):
    for g, w in zip(got, want) if isinstance(got, (tuple, list)) else [(got, want)]:
        assert g.shape == w.shape and g.dtype == w.dtype
        assert torch.equal(bits(g), bits(w))


def near(got, want, rtol):
    torch.testing.assert_close(got.double(), want.double(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "fmt, round_sf, packed, column, dtype",
    [
        ("e4m3", False, False, False, torch.bfloat16),
        ("e4m3", True, True, True, torch.bfloat16),
        ("e4m3", True, True, False, torch.float32),
        ("e2m1", True, True, False, torch.bfloat16),
        ("e2m1", False, False, False, torch.bfloat16),
    ],
)
def test_per_token_cast(tk, draw, fmt, round_sf, packed, column, dtype):
    x = draw(70, 512, dtype=dtype)
    layout = dict(round_sf=round_sf, use_packed_ue8m0=packed, use_tma_aligned_col_major_sf=column)
    same(tk.per_token_cast(x, fmt, 32, **layout), tk.ref_cast.cast(x, fmt, (1, 32), **layout))


@pytest.mark.parametrize("fmt, round_sf", [("e4m3", True), ("e4m3", False), ("e2m1", True)])
def test_per_block_cast(tk, draw, fmt, round_sf):
    x = draw(128, 512, dtype=torch.bfloat16)
    got = tk.per_block_cast(x, fmt, (32, 32), round_sf=round_sf)
    same(got, tk.ref_cast.cast(x, fmt, (32, 32), round_sf=round_sf))


@pytest.mark.parametrize("packed", [False, True])
def test_per_channel_cast(tk, draw, packed):
    x = draw(128, 256, dtype=torch.bfloat16)
    got = tk.per_channel_cast(x, "e4m3", 32, round_sf=True, use_packed_ue8m0=packed)
    same(got, tk.ref_cast.cast(x, "e4m3", (32, 1), round_sf=True, use_packed_ue8m0=packed))


@pytest.mark.parametrize(
    "fmt, out, packed", [("e4m3", "bf16", False), ("e4m3", "fp32", True), ("e2m1", "bf16", True)]
)
def test_cast_back(tk, draw, fmt, out, packed):
    x = draw(128, 512, dtype=torch.bfloat16)
    q = tk.ref_cast.cast(x, fmt, (1, 32), round_sf=True, use_packed_ue8m0=packed)
    same(tk.cast_back(q, out, (1, 32)), tk.ref_cast.cast_back(q, out, (1, 32)))


def test_cast_and_cast_back_in_place(tk, draw):
    x = draw(33, 512, dtype=torch.bfloat16)
    q = tk.ref_cast.cast(x, "e4m3", (1, 32), round_sf=True)
    tk.per_token_cast_and_cast_back(x, "e4m3", 32, round_sf=True)
    same(x, tk.ref_cast.cast_back(q, "bf16", (1, 32)))


def test_lossless_recast_keeps_every_value(tk, draw):
    q = tk.ref_cast.cast(draw(128, 512, dtype=torch.bfloat16), "e2m1", (1, 32), round_sf=True)
    wide = tk.per_block_cast_lossless(q, "e4m3", (1, 32), (32, 32), round_sf=True)
    got = tk.ref_cast.cast_back(wide, "fp32", (32, 32))
    same(got, tk.ref_cast.cast_back(q, "fp32", (1, 32)))


def test_transposed_weight_scales(tk, seed):
    torch.manual_seed(seed)
    sf = torch.exp2(torch.randint(-8, 8, (2, 8, 16)).float())
    got = tk.batched_transpose_weight_sf([sf], 32, [False], [None])
    same(got[0], tk.ref_cast.batched_transpose_weight_sf([sf], 32, [False])[0])


def test_stochastic_cast_goes_to_a_neighbour(tk, draw):
    x = draw(4096)
    got = tk.cast(x, torch.bfloat16, True).float()
    step = torch.exp2(torch.floor(torch.log2(x.abs())) - 7)
    assert torch.all((got - x).abs() < step)
    assert not torch.equal(got, x.bfloat16().float())


@pytest.mark.parametrize("fmt", ["fp32", "bf16"])
def test_swiglu_forward(tk, draw, fmt):
    x = 3 * draw(40, 512, dtype=torch.bfloat16)
    weights = draw(40).abs()
    counted, wanted = torch.zeros(2, 4, dtype=torch.int64)
    options = dict(topk_weights=weights, clamp_value=2.0)
    got = tk.swiglu_forward(x, fmt, clamped_count=counted, **options)
    want = tk.ref_swiglu.swiglu_forward(x, clamped_count=wanted, **options)
    near(got, want, 1e-6 if fmt == "fp32" else 8e-3)
    same(counted, wanted)


def test_swiglu_forward_and_cast(tk, draw):
    x = draw(40, 512, dtype=torch.bfloat16)
    got = tk.swiglu_forward_and_per_token_cast(x, "e4m3", 32, round_sf=True)
    want = tk.ref_swiglu.swiglu_forward(x)
    same(got, tk.ref_cast.cast(want, "e4m3", (1, 32), round_sf=True))


@pytest.mark.parametrize("fmt, dtype", [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_swiglu_backward(tk, draw, fmt, dtype):
    x, grad, weights = draw(128, 512, dtype=dtype), draw(128, 256, dtype=dtype), draw(128).abs()
    got = tk.swiglu_backward(x, grad, fmt, None, weights, clamp_value=2.0)
    want = tk.ref_swiglu.swiglu_backward(x, grad, None, weights, clamp_value=2.0)
    for g, w in zip(got, want):
        near(g, w, 1e-5 if fmt == "fp32" else 1.6e-2)


def test_norm_forward(tk, draw):
    x, weight = draw(33, 768), draw(768)
    got = tk.norm_forward(x, weight, 1e-6)
    want = tk.ref_norm.norm_forward_ref(x, weight, 1e-6)[0]
    near(got[0] if isinstance(got, tuple) else got, want, 2e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norm_backward(tk, draw, dtype):
    x, grad = draw(40, 768, dtype=dtype), draw(40, 768, dtype=dtype)
    weight = draw(768, dtype=dtype)
    rstd = tk.ref_norm.norm_forward_ref(x, weight, 1e-6)[1]
    got = tk.norm_backward(grad, x, weight, rstd)
    want = tk.ref_norm.norm_backward_ref(grad, x, weight, rstd)
    for g, w in zip(got, want):
        near(g, w, 1e-4 if dtype == torch.float32 else 1.6e-2)


@pytest.mark.parametrize("num_experts, num_topk", [(256, 8), (72, 6), (500, 3)])
def test_topk_gate(tk, draw, num_experts, num_topk):
    scores = draw(77, num_experts)
    scores[:, 1::2] = scores[:, ::2]  # ties everywhere
    same(tk.topk_gate(scores, num_topk), tk.ref_topk.stable_topk(scores, num_topk).contiguous())


def test_moe_topk_gate_forward(tk, draw):
    logits, bias = draw(37, 256), 0.1 * draw(256)
    got = tk.moe_topk_gate_forward(logits, 8, False, 0, 2.5, 0, bias=bias)
    want = tk.ref_topk.moe_topk_gate_forward(logits, 8, False, 0, 2.5, 0, "sqrtsoftplus", bias=bias)
    same(got[0], want[0])
    near(got[1], want[1], 5e-7)  # the weights are normalised by a sum in another order


def test_moe_topk_gate_backward(tk, draw):
    scores = draw(37, 256).abs()
    weights, index = torch.topk(scores, 8)
    weights = weights / weights.sum(-1, keepdim=True) * 2.5
    grad = draw(37, 8)
    got = tk.moe_topk_gate_backward(scores, index, weights, grad, 2.5)
    want = tk.ref_topk.moe_topk_gate_backward(scores, index, weights, grad, 2.5, "sqrtsoftplus")
    near(got, want, 2e-7)


def test_normalize_weight(tk, draw):
    weights = draw(37, 8).abs()
    same(tk.normalize_weight(weights), tk.ref_moe.normalize_weight(weights))
