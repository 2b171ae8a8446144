"""Matrix products of every element type and shape family against float64."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import EmulatorError, run
from tests.emulator.kernels import gemm

pytestmark = pytest.mark.emu


@pytest.fixture
def draw(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype)

    return normal


def near(got, want, rtol=2e-6):
    scale = want.abs().max()
    assert (got.double() - want).abs().max() <= rtol * scale


DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


@pytest.mark.parametrize("dtype", [*DTYPES, "float8_e4m3fn"])
def test_through_l1(draw, dtype):
    torch_dtype = DTYPES.get(dtype) or torch.float8_e4m3fn
    a, b = draw(128, 256, dtype=torch_dtype), draw(128, 256, dtype=torch_dtype)
    c = torch.full((128, 128), float("nan"))
    run(gemm.gemm_l1(128, 128, 256, dtype, block_k=64), a, b, c)
    near(c, a.double() @ b.double().T)


@pytest.mark.parametrize(
    "trans_a, trans_b", [(False, True), (False, False), (True, True), (True, False)]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_transposed_operands_through_l0(draw, dtype, trans_a, trans_b):
    a, b = draw(128, 64, dtype=DTYPES[dtype]), draw(128, 64, dtype=DTYPES[dtype])
    c = torch.full((128, 128), float("nan"))
    kernel = gemm.gemm_l0(128, 128, 64, dtype, trans_a, trans_b)
    run(kernel, a.T.contiguous() if trans_a else a, b if trans_b else b.T.contiguous(), c)
    near(c, a.double() @ b.double().T)


def test_float8_e5m2_through_l0(draw):
    a, b = (draw(64, 96).to(torch.float8_e5m2) for _ in range(2))
    c = torch.full((64, 64), float("nan"))
    run(gemm.gemm_l0(64, 64, 96, "float8_e5m2"), a, b, c)
    near(c, a.double() @ b.double().T)


@pytest.mark.parametrize("trans_b", [True, False])
def test_int8_sums_exactly(seed, trans_b):
    torch.manual_seed(seed)
    a, b = torch.randint(-128, 128, (2, 64, 64), dtype=torch.int8)
    c = torch.zeros(64, 64, dtype=torch.int32)
    kernel = gemm.gemm_l0(64, 64, 64, "int8", trans_b=trans_b, accum="int32")
    run(kernel, a, b if trans_b else b.T.contiguous(), c)
    assert torch.equal(c, a.int() @ b.int().T)


@pytest.mark.parametrize("m, n, k", [(200, 136, 160), (1, 16, 32), (129, 127, 65)])
def test_odd_tails_stay_inside(draw, m, n, k):
    a, b = draw(m, k, dtype=torch.bfloat16), draw(n, k, dtype=torch.bfloat16)
    c = torch.full((m, n), float("nan"))
    run(gemm.gemm_l1(m, n, k, "bfloat16"), a, b, c)
    near(c, a.double() @ b.double().T)


def test_split_k_adds_atomically(draw):
    a, b = draw(128, 512, dtype=torch.bfloat16), draw(256, 512, dtype=torch.bfloat16)
    c = torch.ones(128, 256)
    run(gemm.gemm_split_k(128, 256, 512, 4), a, b, c)
    near(c, 1 + a.double() @ b.double().T)


@pytest.mark.parametrize("cores", [1, 3, 28, 32, 36])
def test_persistent_grid_on_any_number_of_cores(draw, cores):
    a, b = draw(256, 128, dtype=torch.bfloat16), draw(256, 128, dtype=torch.bfloat16)
    c = torch.zeros(256, 256, dtype=torch.bfloat16)
    run(gemm.gemm_persistent(256, 256, 128, 3), a, b, c, cores=cores)
    assert torch.equal(c, (a.double() @ b.double().T).float().bfloat16())


@pytest.mark.parametrize("mode, bits", [(None, 24), ("nearest_zero", 12), ("nearest_even", 12)])
def test_hf32_keeps_twelve_significant_bits(draw, mode, bits):
    a, b = draw(64, 64), draw(64, 64)
    c = torch.zeros(64, 64)
    run(gemm.gemm_hf32(64, 64, 64, mode), a, b, c)

    def cut(x):
        mantissa, exponent = torch.frexp(x.double())
        scaled = torch.ldexp(mantissa, torch.tensor(bits))
        if mode == "nearest_zero":  # prints NEAREST_AWAY: ties go away from zero
            whole = torch.trunc(scaled + torch.copysign(torch.tensor(0.5).double(), scaled))
        else:
            whole = torch.round(scaled)
        return torch.ldexp(whole, exponent - bits)

    near(c, cut(a) @ cut(b).T)
    if mode:
        assert (c.double() - a.double() @ b.double().T).abs().max() > 1e-4


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
E2M1 = torch.cat([E2M1, -E2M1])


def unpack_fp4(x):
    codes = x.view(torch.uint8).long()
    return torch.stack([E2M1[codes & 15], E2M1[codes >> 4]], -1).reshape(len(x), -1)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float4_e2m1fn"])
def test_block_scaled(draw, seed, dtype):
    torch.manual_seed(seed)
    m, k = 64, 192
    scales = [torch.randint(110, 144, (m, k // 32), dtype=torch.uint8) for _ in range(2)]
    if dtype == "float8_e4m3fn":
        operands = [draw(m, k).to(torch.float8_e4m3fn) for _ in range(2)]
        values = [x.double() for x in operands]
    else:
        raw = [torch.randint(0, 256, (m, k // 2), dtype=torch.uint8) for _ in range(2)]
        operands = [x.view(torch.int8) for x in raw]
        values = [unpack_fp4(x) for x in operands]
    real = [
        v * torch.exp2(s.double() - 127).repeat_interleave(32, 1) for v, s in zip(values, scales)
    ]
    c = torch.zeros(m, m)
    run(gemm.gemm_mx(m, m, k, dtype), *operands, *scales, c)
    near(c, real[0] @ real[1].T)


def test_wrong_operand_type_is_an_error_before_the_launch(draw):
    a = draw(128, 128)
    with pytest.raises(ValueError, match="dtype mismatch"):
        run(gemm.gemm_l1(128, 128, 128, "bfloat16"), a, a, torch.zeros(128, 128))


def test_poison_reaches_an_output_that_reads_unwritten_memory(draw):
    """An L0 tile that nothing loaded is NaN, not zero."""
    kernel = gemm.gemm_l0(64, 64, 64, "bfloat16")
    from ascendkit.emulator.lowered import LoweredKernel

    lowered = LoweredKernel(kernel)
    text = lowered.kernel_source
    load = next(line for line in text.splitlines() if "asc_copy_l12l0a(" in line)
    a = draw(64, 64, dtype=torch.bfloat16)
    c = torch.zeros(64, 64)
    run(text.replace(load, ""), a, a, c, grid=1)
    assert torch.isnan(c).all()


def test_too_large_a_product_names_the_memory(draw):
    lowered_text = gemm.gemm_l0(64, 64, 64, "bfloat16")
    from ascendkit.emulator.lowered import LoweredKernel

    text = LoweredKernel(lowered_text).kernel_source
    tail = text.split("asc_mmad(", 1)[1]
    arguments = tail.split(");", 1)[0]
    broken = text.replace(arguments, arguments.replace(", 64, 64, 64,", ", 64, 64, 2048,"))
    a = draw(64, 64, dtype=torch.bfloat16)
    with pytest.raises(EmulatorError, match=r"L0B bytes .* of 65536") as failure:
        run(broken, a, a, torch.zeros(64, 64), grid=1)
    assert failure.value.code == "AK-BOUNDS-004"
    assert "asc_mmad" in failure.value.text
