"""The judge of memory: for each finding the smallest kernel that gives it, and its twin that does
not."""

from __future__ import annotations

from textwrap import indent

import pytest
import torch

from ascendkit.emulator import fresh
from ascendkit.emulator.kernel import EmulatedKernel

pytestmark = pytest.mark.emu

# Every case of the switch is one kernel body; x and y are tensors, n a number.
_HEAD = """#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
#include <tl_templates/ascend/simd_inst.h>
"""
_FUNCTIONS = """
__simd_vf__ inline void add_one_simd_vf_0(__ubuf__ float* p) {
  vector_bool m = asc_create_mask_b32(PAT_ALL);
  auto a = simd_inst::vlds_norm<float>(p, 0);
  simd_inst::vsts_norm(simd_inst::vadds(a, 1.0f, m, MODE_ZEROING), p + 64, 0, m);
}
__simd_vf__ inline void maximum_simd_vf_0(__ubuf__ float* p, int32_t lanes) {
  uint32_t left = lanes;
  vector_bool some = asc_update_mask_b32(left), all = asc_create_mask_b32(PAT_ALL);
  auto a = simd_inst::vlds_norm<float>(p, 0);
  vector_float low;
  asc_duplicate_scalar(low, -3e38f, all);
  auto b = simd_inst::vsel(a, low, some);
  vector_float top;
  asc_reduce_max(top, b, all);
  asc_storealign_1st(p + 64, top, 0);
}
__simt_vf__ inline void copy_simt_vf_0(__ubuf__ float* p, __gm__ float* y, int32_t n) {
  if (int32_t(threadIdx.x) < n) y[threadIdx.x] = p[threadIdx.x];
}
"""


def _in(bytes: object, to: object = 0, at: object = 0, rows=1, apart=0, on_chip=0) -> str:
    return (
        f"asc_copy_gm2ub_align((__ubuf__ uint8_t*)(ub + {to}), (__gm__ uint8_t*)(x + {at}), "
        f"{rows}, {bytes}, 0, 0, 0, static_cast<asc_load_l2_cache_mode>(0), {apart}, {on_chip});\n"
    )


def _out(bytes: object, to: object = 0, at: object = 0, rows=1, apart=0, on_chip=0) -> str:
    return (
        f"asc_copy_ub2gm_align((__gm__ uint8_t*)(y + {to}), (__ubuf__ uint8_t*)(ub + {at}), "
        f"{rows}, {bytes}, static_cast<asc_store_l2_cache_mode>(0), {apart}, {on_chip});\n"
    )


_SYNC = "asc_sync();\n"
BODIES = {
    "copy": _in(1024) + _SYNC + _out("n"),
    "rows": _in(1024) + _SYNC + _out(32, rows=4, apart="n", on_chip=32),
    "read": _in("n"),
    "scalar": "y[n] = x[n];\n",
    "hidden": "memset((void*)(y + n), 0, size_t(64 + n - n));\n",
    "narrow": _in(4, rows=16, apart=64, on_chip="n"),
    "wide": _in(36, rows=4, apart=64, on_chip="n"),
    "overlapping": _in(64, rows=4, apart=128, on_chip="n"),
    "half": _in("n") + _SYNC + _out(1024),
    "add": _in("n") + _SYNC + "add_one_simd_vf_0(ub);\n" + _SYNC + _out(256, at=64),
    "add_tail": _in("n") + _SYNC + "add_one_simd_vf_0(ub);\n" + _SYNC + _out("n", at=64),
    "maximum": _in(128) + _SYNC + "maximum_simd_vf_0(ub, n);\n" + _SYNC + _out(4, at=64),
    "branch": _in(128) + _SYNC + "if (ub[n] > 0) {\n" + _out(64) + "}\n",
    "address": _in(128) + _SYNC + _out(64, to="(((__ubuf__ int32_t*)ub)[n] & 15)"),
    "simt": _in(128) + _SYNC + "asc_vf_call<copy_simt_vf_0>(cce::dim3(64), ub, y, n);\n" + _SYNC,
    "lines": _in(1024) + _SYNC + _out(16, to="n * block_idx"),
    "short_rows": _in(1024) + _SYNC + _out(20, rows=4, apart="n", on_chip=32),
    "again": _in(1024) + _SYNC + _out("n", at=128),
}
NAMES = list(BODIES)


@pytest.fixture(scope="module")
def kernel():
    cases = "".join(f"case {i}: {{\n{b}break;\n}}\n" for i, b in enumerate(BODIES.values()))
    body = f"asc_init();\n__ubuf__ float *ub = (__ubuf__ float *)0;\nswitch (which) {{\n{cases}}}\n"
    head = 'extern "C" __global__ __vector__ void memory(__gm__ float* x, __gm__ float* y, '
    parameters = "int32_t n, int32_t which) {\n"
    return EmulatedKernel(
        _HEAD + _FUNCTIONS + head + parameters + indent(body + "asc_sync();\n", "  ") + "}\n"
    )


@pytest.fixture
def judge(kernel):
    def judge(body, n, x=None, y=None, grid=1, **options):
        x = torch.arange(256.0) if x is None else x
        y = torch.zeros(256) if y is None else y
        kernel.launch([x, y, n, NAMES.index(body)], grid=grid, check=True, **options)
        return list(kernel.findings)

    return judge


def codes(found):
    return [f.code for f in found]


def line(kernel, found, text):
    """Whether the finding's line holds ``text``."""
    return text in kernel.text.splitlines()[found.site - 1]


# ---- bounds ------------------------------------------------------------------------------------


def test_a_write_past_a_view_inside_its_storage(judge, kernel):
    storage = torch.zeros(256)
    (found,) = judge("copy", 256, y=storage[:60])
    assert found.code == "AK-BOUNDS-005" and found.write and line(kernel, found, "ub2gm")
    assert found.base == storage.data_ptr() and found.bytes == 256
    assert "16 past the end of its 240" in found.detail
    assert torch.equal(storage[:60], torch.arange(60.0)) and not storage[60:].any()
    assert judge("copy", 240, y=storage[:60]) == []


def test_a_write_between_the_rows_of_a_view(judge):
    storage = torch.zeros(16, 16)
    assert codes(judge("copy", 128, y=storage[:4, :8])) == ["AK-BOUNDS-005"]
    assert judge("rows", 64, y=storage[:4, :8]) == []
    assert torch.equal(storage[:4, :8].flatten(), torch.arange(32.0))
    assert codes(judge("rows", 96, y=storage[:4, :8])) == ["AK-BOUNDS-005"]


def test_a_write_into_another_tensor_of_the_storage(judge):
    storage = torch.zeros(4, 16)
    x, y = storage[:, :8], storage[:, 8:]
    assert codes(judge("rows", 56, x=torch.zeros(256), y=y)) == ["AK-BOUNDS-005"]
    assert not x.any()


def test_a_read_past_a_view_inside_its_storage(judge):
    storage = torch.zeros(512)
    (found,) = judge("read", 804, x=storage[:200])
    assert found.code == "AK-BOUNDS-006" and not found.write
    assert judge("read", 800, x=storage[:200]) == []


@pytest.mark.parametrize("n, code", [(255, None), (256, "AK-BOUNDS-001"), (700, "AK-BOUNDS-001")])
def test_scalar_code_past_a_tensor(judge, n, code):
    found = judge("scalar", n, x=torch.zeros(1024))
    assert codes(found) == ([code] if code else [])
    for f in found:
        assert f"bytes [{4 * n}, {4 * n + 4})" in f.detail and f.write and f.pipe == "S"


def test_scalar_code_in_a_view(judge):
    storage = torch.zeros(256)
    assert codes(judge("scalar", 100, y=storage[:100])) == ["AK-BOUNDS-005"]
    assert judge("scalar", 99, y=storage[:100]) == []


def test_simt_code_past_a_tensor(judge):
    assert judge("simt", 32, y=torch.zeros(32)) == []
    found = judge("simt", 32, y=torch.zeros(30))
    assert codes(found) == ["AK-BOUNDS-001"] and found[0].pipe == "V"


def test_a_write_that_no_record_shows(judge):
    (found,) = judge("hidden", 250)
    assert found.code == "AK-CANARY-001" and found.site == 0
    assert "y: byte 1024 changed, 1 B past its end; 40 bytes" in found.detail
    assert judge("hidden", 240) == []


def test_aliases_stay_aliases(judge):
    both = torch.arange(256.0)
    assert judge("again", 512, x=both, y=both) == []
    assert torch.equal(both[:128], torch.arange(128.0, 256.0))
    assert torch.equal(both[128:], torch.arange(128.0, 256.0))


def test_tensors_in_shared_memory_stay_in_place(judge):
    y = torch.zeros(256).share_memory_()
    assert codes(judge("copy", 256, y=y[:60])) == ["AK-BOUNDS-005"]
    assert y[63] == 63  # no copy protects it


# ---- bursts --------------------------------------------------------------------------------------


def test_narrow_blocks(judge):
    (found,) = judge("narrow", 4)
    assert found.code == "AK-BURST-001"
    assert "blockLen 4 B < 32 B with blockCount 16" in found.detail
    assert judge("narrow", 32) == []


def test_rows_at_odd_distances_on_the_chip(judge):
    assert codes(judge("wide", 36)) == ["AK-BURST-002"]
    assert judge("wide", 64) == []


def test_overlapping_blocks(judge):
    assert codes(judge("overlapping", 32)) == ["AK-BURST-003"]
    assert judge("overlapping", 64) == []


def test_lines_that_are_written_in_parts(judge):
    assert judge("lines", 4, grid=4) == []
    (found,) = judge("lines", 4, grid=4, advice=True)
    assert (found.code, found.block, found.other_block) == ("AK-BURST-005", 1, 0)
    assert judge("lines", 8, grid=4, advice=True) == []
    assert codes(judge("short_rows", 20, advice=True)) == ["AK-BURST-004"]
    assert judge("short_rows", 32, advice=True) == []


# ---- memory without a value ----------------------------------------------------------------------


def test_a_copy_of_unwritten_bytes(judge, kernel):
    (found,) = judge("half", 512)
    assert found.code == "AK-UNINIT-001" and line(kernel, found, "ub2gm")
    assert (found.space, found.base, found.bytes) == ("UB", 512, 512)
    assert found.detail == "y: bytes [512, 1024)"
    assert judge("half", 1024) == []


def test_unwritten_lanes_that_are_stored(judge, kernel):
    (found,) = judge("add", 128)
    assert found.code == "AK-UNINIT-003" and line(kernel, found, "ub2gm")
    assert (found.space, found.base, found.bytes) == ("UB", 128, 128)
    assert "vlds_norm" in kernel.text.splitlines()[found.other_site - 1]
    assert judge("add", 256) == []


def test_whole_registers_over_a_tail_are_silent(judge):
    assert judge("add_tail", 128) == []


def test_masked_reductions_are_silent(judge):
    assert judge("maximum", 32) == []
    assert codes(judge("maximum", 40)) == ["AK-UNINIT-003"]


def test_a_branch_on_unwritten_memory(judge, kernel):
    (found,) = judge("branch", 100)
    assert found.code == "AK-UNINIT-004" and found.base == 400
    assert judge("branch", 10) == []


def test_an_address_from_unwritten_memory(judge):
    (found,) = judge("address", 100)
    assert found.code == "AK-UNINIT-005" and found.base == 400
    assert judge("address", 10) == []


def test_simt_reads_of_unwritten_memory(judge):
    assert judge("simt", 32) == []
    assert codes(judge("simt", 40)) == ["AK-UNINIT-003"]


def test_memory_of_torch_empty(judge):
    with fresh.watching():
        x = torch.empty(256)
        x[:128] = 1
        assert judge("copy", 1024, x=x) == []  # torch has written it: all of it counts
        x = torch.empty(256)
        assert codes(judge("half", 1024, x=x)) == ["AK-UNINIT-001"]


def test_reports_are_the_same_every_time(judge):
    once = judge("lines", 3, grid=16, advice=True)
    for _ in range(3):
        again = judge("lines", 3, grid=16, advice=True)
        assert [(f.code, f.block, f.other_block, f.count) for f in again] == [
            (f.code, f.block, f.other_block, f.count) for f in once
        ]


# ---- coverage ------------------------------------------------------------------------------------


def test_elements_that_were_never_written(judge):
    with fresh.watching():
        y = torch.empty(8, 32)
        (found,) = judge("copy", 6 * 128, y=y)
        assert found.code == "AK-COVERAGE-002"
        assert "y[6:8]: 0 of 64 elements written" in found.detail
        assert judge("copy", 2 * 128, y=torch.empty(8, 32)) == []  # a part on purpose
        assert judge("copy", 1024, y=torch.empty(8, 32)) == []
    assert judge("copy", 512) == []  # had values before
