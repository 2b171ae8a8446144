"""The record stream, and the mode that follows control flow only."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import EmulatorError, records
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.kernels import attention, gemm, mixed, vector

pytestmark = pytest.mark.emu


@pytest.fixture
def add():
    return LoweredKernel(vector.add.get_tir(512), out_idx=-1)


def test_a_vector_kernel_leaves_its_story(add):
    a, b = torch.randn(2, 512)
    records.read()
    assert torch.equal(add(a, b, trace=2), a + b)
    story = [r for r in records.read() if r.block == 0]
    copies = [r for r in story if r.name == "asc_copy_gm2ub_align"]
    assert [r.pipe for r in copies] == ["MTE2", "MTE2"]
    reads, writes = copies[0].accesses
    assert (reads.space, reads.base, reads.row_bytes) == ("GM", a.data_ptr(), 1024)
    assert (writes.space, writes.write, writes.row_bytes) == ("UB", True, 1024)
    names = [r.name for r in story]
    assert names.index("asc_sync_notify") < names.index("asc_sync_wait") < names.index("simd_vf")
    loads = [r for r in story if r.name == "asc_loadalign"]
    stores = [r for r in story if r.name == "asc_storealign"]
    assert len(loads) == 8 and len(stores) == 4
    assert all(x.row_bytes == 256 and not x.write for r in loads for x in r.accesses)
    assert all([(x.row_bytes, x.write) for x in r.accesses] == [(256, True)] for r in stores)
    source = add.kernel_source.splitlines()
    assert all("asc_copy_gm2ub_align" in source[r.line - 1] for r in copies)
    assert all("vlds_norm" in source[r.line - 1] for r in loads)


def test_a_product_names_its_tiles():
    kernel = LoweredKernel(gemm.gemm_l0(64, 64, 64, "bfloat16"))
    a, b = torch.randn(2, 64, 64).bfloat16()
    records.read()
    kernel(a, b, torch.zeros(64, 64), trace=2)
    product = next(r for r in records.read() if r.name == "asc_mmad")
    assert [(x.space, x.row_bytes) for x in product.accesses] == [
        ("L0A", 8192),
        ("L0B", 8192),
        ("L0C", 16384),
    ]
    assert product.core == "AIC" and product.arguments[0] == 64 << 40 | 64 << 20 | 64


def test_signals_come_before_the_waits_they_release():
    kernel = LoweredKernel(attention.flash_attention(1, 64, 128))
    tensors = [torch.randn(n, 64).bfloat16() for n in (64, 128, 128)]
    records.read()
    kernel(*tensors, torch.zeros(64, 64), trace=2)
    pending: dict[tuple[object, ...], int] = {}
    waits = 0
    for r in records.read():
        if r.name == "asc_sync_notify":
            key = (r.block, r.core, r.pipe, records.PIPES[r.arguments[0]], r.arguments[1])
            pending[key] = pending.get(key, 0) + 1
        elif r.name == "asc_sync_wait":
            key = (r.block, r.core, records.PIPES[r.arguments[0]], r.pipe, r.arguments[1])
            pending[key] = pending.get(key, 0) - 1
            assert pending[key] >= 0
            waits += 1
    assert waits > 20


def test_no_trace_writes_nothing(add):
    a, b = torch.randn(2, 512)
    records.read()
    add(a, b)
    add(a, b, trace=1)
    assert records.read() == []


def test_control_flow_alone_runs_shapes_without_memory():
    kernel = LoweredKernel(gemm.gemm_l1(8192, 8192, 1024, "bfloat16"))
    a, b = torch.empty(2, 8192, 1024, dtype=torch.bfloat16, device="meta")
    records.read()
    kernel(a, b, torch.empty(8192, 8192, device="meta"), control=True, trace=2)
    products = sum(r.name == "asc_mmad" for r in records.read())
    assert products == (8192 // 128) ** 2 * (1024 // 128)


def test_control_flow_alone_moves_no_data():
    kernel = LoweredKernel(mixed.gemm_relu_scale(64, 64, 64))
    a, b = torch.randn(2, 64, 64).bfloat16()
    c = torch.full((64, 64), 7.0)
    kernel(a, b, c, control=True)
    assert torch.all(c == 7)


def test_a_branch_on_data_is_refused():
    text = """#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
extern "C" __global__ __vector__ void f(__gm__ float* x) {
  asc_init();
  __ubuf__ float *buf = (__ubuf__ float *)0;
  if (READ > 0) {
    asc_sync();
  }
}
"""
    from ascendkit.emulator.kernel import EmulatedKernel

    for read in ("buf[3]", "asc_load_dev((__gm__ uint32_t*)x)"):
        kernel = EmulatedKernel(text.replace("READ", read))
        kernel.launch([torch.zeros(8)], grid=1)
        with pytest.raises(EmulatorError) as failure:
            kernel.launch([torch.zeros(8)], grid=1, control=True)
        assert failure.value.code == "AK-CONTROL-001" and failure.value.line
