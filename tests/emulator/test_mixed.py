"""Kernels that use several kinds of cores or code at once."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import EmulatorError, run
from tests.emulator.kernels import attention, mixed

pytestmark = pytest.mark.emu


@pytest.fixture
def draw(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype)

    return normal


def test_cube_and_two_vector_cores(draw):
    a, b = draw(128, 128, dtype=torch.bfloat16), draw(192, 128, dtype=torch.bfloat16)
    c = torch.full((128, 192), float("nan"))
    run(mixed.gemm_relu_scale(128, 192, 128), a, b, c)
    want = 0.5 * (a.double() @ b.double().T).clamp(min=0)
    assert (c.double() - want).abs().max() <= 2e-6 * want.abs().max()


@pytest.mark.parametrize("rows, width", [(9, 256), (1, 64), (70, 128)])
def test_simd_and_simt(draw, rows, width):
    x = draw(rows, width)
    y, rank = torch.zeros(rows, width), torch.zeros(rows, width, dtype=torch.int32)
    run(mixed.scale_then_rank(rows, width), x, y, rank)
    assert torch.equal(y, 2 * x + 1)
    assert torch.equal(rank, (y[:, None, :] < y[:, :, None]).sum(-1).int())


@pytest.mark.parametrize("cores, threads", [(1, 1), (5, 2), (64, 2), (64, 1)])
def test_barrier_over_all_cores(draw, cores, threads):
    x = draw(cores, 64)
    mid, y = torch.zeros(2, cores, 64)
    run(mixed.neighbour_sum(cores), x, mid, y, threads=threads)
    assert torch.equal(y, (x + 1) + (x + 1).roll(-1, 0))


def test_a_barrier_of_more_blocks_than_cores_is_a_deadlock(draw):
    x = draw(5, 64)
    mid, y = torch.zeros(2, 5, 64)
    with pytest.raises(EmulatorError, match="3 blocks have not started") as failure:
        run(mixed.neighbour_sum(5), x, mid, y, cores=1)
    assert failure.value.code == "AK-DEADLOCK-001"
    assert "asc_sync_inter_wait flag 0" in str(failure.value)


@pytest.mark.parametrize("replay", [0, 1, 2, 3])
def test_attention_in_any_order(draw, replay):
    heads, queries, keys = 2, 64, 128
    q = draw(heads * queries, 64, dtype=torch.bfloat16)
    k, v = (draw(heads * keys, 64, dtype=torch.bfloat16) for _ in range(2))
    out = torch.full((heads * queries, 64), float("nan"))
    run(attention.flash_attention(heads, queries, keys), q, k, v, out, replay=replay)
    q, k, v = (x.double().view(heads, -1, 64) for x in (q, k, v))
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v).reshape(-1, 64)
    assert (out.double() - want).abs().max() < 4e-3
