"""Findings of products, of what nobody wrote, and between the cores of a block: for each the
smallest kernel that gives it, and its twin that does not."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator.kernel import EmulatedKernel

pytestmark = pytest.mark.emu

MMAD = (
    "asc_mmad((__cc__ float *)0, (__ca__ half *)0, (__cb__ half *)0, 16, 16, 16, 0, false, false, "
    "CLEAR);\n"
)
FILL = (
    "asc_set_gm2l1_nz_para(1, 1, 16, 0);\n"
    "asc_copy_gm2l1_nd2nz((__cbuf__ half *)0, (__gm__ half *)x, 16, "
    "static_cast<asc_load_l2_cache_mode>(0), 16, 16, 0, 0);\nasc_sync();\n"
    "asc_copy_l12l0a((__ca__ half *)0, (__cbuf__ half *)0, 0, 0, 1, 1, 1, 1);\n"
    "asc_copy_l12l0b((__cb__ half *)0, (__cbuf__ half *)0, 0, 0, 1, 1, 1, 1);\nasc_sync();\n"
)
STORE = (
    "asc_copy_ub2gm_align((__gm__ uint8_t*)x, (__ubuf__ uint8_t*)p, 1, 256, "
    "static_cast<asc_store_l2_cache_mode>(0), 256, 256);\n"
)
ALL = "for (int32_t i = 0; i < 64; ++i) p[i] = 1.0f;\nasc_sync();\n" + STORE + "asc_sync();\n"


def arrive(pipe, times=1):
    """Signals flag 3 of both vector cores."""
    both = "".join(f"asc_sync_intra_arrive(PIPE_{pipe}, {n});\n" for n in (3, 19))
    return f"for (int32_t i = 0; i < {times}; ++i) {{\n{both}}}\n"


def wait(pipe, times=1):
    return f"for (int32_t i = 0; i < {times}; ++i) asc_sync_intra_wait(PIPE_{pipe}, 3);\n"


def aic(body):
    return f"if (ASC_IS_AIC) {{\n{body}}}\n"


def aiv(body):
    return f"if (ASC_IS_AIV) {{\n{body}}}\n"


def first(body):
    return aiv(f"if (asc_get_sub_block_id() == 0) {{\n{body}}}\n")


def product(fill, clear):
    return aic((FILL if fill else "") + MMAD.replace("CLEAR", clear) + "asc_sync();\n")


# Every body is one case of a switch.
BODIES = {
    "product of nothing": product(False, "true"),
    "product of nothing onto nothing": product(False, "false"),
    "product": product(True, "true"),
    "product onto nothing": product(True, "false"),
    "8 of 16 columns": aic(FILL + MMAD.replace("16, 16, 16", "16, 8, 16").replace("CLEAR", "true")),
    "16 of 16 columns": aic(FILL + MMAD.replace("CLEAR", "true")),
    "cached": first(ALL + "p[64] = x[0];\n"),
    "uncached": first(ALL + "p[64] = asc_load_dev((__gm__ uint32_t*)x);\n"),
    "cores meet": aic("x[0] = 1.0f;\n") + first("x[0] = 2.0f;\n"),
    "cores in one line": aic("x[0] = 1.0f;\n") + first("x[15] = 2.0f;\n"),
    "a core and a copy in one line": aic("x[64] = 1.0f;\n") + first(ALL),
    "cores apart": aic("x[0] = 1.0f;\n") + first("x[16] = 2.0f;\n"),
    "15 signals": aic(arrive("FIX", 15)) + aiv(wait("V", 15)),
    "16 signals": aic(arrive("FIX", 16)) + aiv(wait("V", 16)),
    "two pipes wait": aic(arrive("FIX", 2)) + aiv(wait("V") + wait("MTE3")),
    "one pipe waits": aic(arrive("FIX", 2)) + aiv(wait("V") + wait("V")),
    "two pipes signal": aic(arrive("FIX") + arrive("MTE1")) + aiv(wait("V", 2)),
    "one pipe signals": aic(arrive("FIX") + arrive("FIX")) + aiv(wait("V", 2)),
}


@pytest.fixture(scope="module")
def findings():
    cases = "".join(f"case {i}: {{\n{b}break;\n}}\n" for i, b in enumerate(BODIES.values()))
    kernel = EmulatedKernel(
        "#include <tl_templates/ascend/common.h>\n#include <tl_templates/ascend/debug.h>\n"
        'extern "C" __global__ __mix__(1, 2) void rare(__gm__ float* x, int32_t which) {\n'
        "asc_init();\n__ubuf__ float *p = (__ubuf__ float *)0;\n"
        f"switch (which) {{\n{cases}}}\n}}\n"
    )

    def findings(name):
        which = list(BODIES).index(name)
        kernel.launch([torch.ones(256), which], grid=1, check=True, timeout_s=5)
        return list(kernel.findings)

    return findings


@pytest.mark.parametrize(
    "name, spaces",
    [
        ("product of nothing", {"L0A", "L0B"}),
        ("product of nothing onto nothing", {"L0A", "L0B", "L0C"}),
        ("product onto nothing", {"L0C"}),
        ("product", set()),
    ],
)
def test_a_product_of_what_nobody_wrote(findings, name, spaces):
    found = findings(name)
    assert {(f.code, f.space) for f in found} == {("AK-UNINIT-002", s) for s in spaces}
    assert all(f.bytes for f in found)


@pytest.mark.parametrize(
    "wrong, code, right",
    [
        ("cached", "AK-RACE-006", "uncached"),
        ("cores meet", "AK-RACE-007", "cores apart"),
        ("cores in one line", "AK-RACE-011", "cores apart"),
        ("8 of 16 columns", "AK-CUBE-004", "16 of 16 columns"),
        ("16 signals", "AK-SYNC-013", "15 signals"),
        ("two pipes wait", "AK-SYNC-014", "one pipe waits"),
        ("two pipes signal", "AK-SYNC-014", "one pipe signals"),
    ],
)
def test_between_pipes_and_cores(findings, wrong, code, right):
    assert {f.code for f in findings(wrong)} == {code}
    assert findings(right) == []


def test_a_line_of_the_data_cache_ends_after_64_bytes(findings):
    # The copy fills bytes 0..255, the scalar store is to byte 256.
    assert findings("a core and a copy in one line") == []


@pytest.mark.parametrize("blocks", [3, 4])
def test_a_part_of_an_output_that_no_block_writes(blocks):
    pytest.importorskip("tilelang")
    from ascendkit.emulator.lowered import LoweredKernel, ascend_target
    from tests.emulator.kernels.shared import tiles

    with ascend_target():
        kernel = LoweredKernel(tiles(4, blocks), [-1])
    x = torch.arange(256.0).view(4, 64)
    y = kernel(x, check=True)
    assert torch.equal(y[:blocks], x[:blocks])
    found = [(f.code, f.detail.split(";")[0]) for f in kernel.findings]
    missing = [("AK-COVERAGE-001", "y[3]: 0 of 64 elements written")]
    assert found == (missing if blocks == 3 else [])
