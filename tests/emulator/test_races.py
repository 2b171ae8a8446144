"""Races and the protocol of events: the smallest kernels that have each fault, and their cures."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import EmulatorError, records
from ascendkit.emulator.findings import check
from ascendkit.emulator.findings.finding import Finding
from ascendkit.emulator.kernel import EmulatedKernel

pytestmark = pytest.mark.emu

HEAD = """#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
#include <tl_templates/ascend/simd_inst.h>
__simd_vf__ inline void twice_simd_vf_0(__ubuf__ float* p) {
  vector_bool m = asc_create_mask_b32(PAT_ALL);
  auto a = simd_inst::vlds_norm<float>(p, 0);
  simd_inst::vsts_norm(simd_inst::vadd(a, a, m, MODE_ZEROING), p, 0, m);
}
__simd_vf__ inline void again_simd_vf_0(__ubuf__ float* p) {
  vector_bool m = asc_create_mask_b32(PAT_ALL);
  simd_inst::vsts_norm(simd_inst::vlds_norm<float>(p, 0), p + 64, 0, m);
  /*barrier*/
  simd_inst::vsts_norm(simd_inst::vlds_norm<float>(p + 64, 0), p, 0, m);
}
__simt_vf__ __launch_bounds__(64) inline void turn_simt_vf_0(__ubuf__ float* p) {
  float mine = p[63 - (int32_t)threadIdx.x];
  asc_syncthreads();
  p[(int32_t)threadIdx.x] = mine;
}
extern "C" __global__ __vector__ void k(__gm__ float* x) {
  asc_init();
  __ubuf__ float *p = (__ubuf__ float *)0;
"""
IN = (
    "  asc_copy_gm2ub_align((__ubuf__ uint8_t*)p, (__gm__ uint8_t*)AT, 1, 256, 0, 0, 0, "
    "static_cast<asc_load_l2_cache_mode>(0), 256, 256);\n"
)
OUT = (
    "  asc_copy_ub2gm_align((__gm__ uint8_t*)AT, (__ubuf__ uint8_t*)p, 1, 256, "
    "static_cast<asc_store_l2_cache_mode>(0), 256, 256);\n"
)
TWICE = "  twice_simd_vf_0(p);\n"
MINE = "(x + 64 * block_idx)"


def event(source: str, target: str, number: int = 0) -> str:
    which = f"(PIPE_{source}, PIPE_{target}, static_cast<event_t>({number}));\n"
    return f"  asc_sync_notify{which}  asc_sync_wait{which}"


def body(*parts: str, at: str = MINE) -> str:
    return HEAD + "".join(parts).replace("AT", at) + "}\n"


LOAD, STORE = event("MTE2", "V"), event("V", "MTE3")
GOOD = body(IN, LOAD, TWICE, STORE, OUT)
SCALAR = body(IN, event("MTE2", "S"), "  p[3] = p[2] + 1.0f;\n", event("S", "MTE3"), OUT)
TURN = body(IN, LOAD, "  asc_vf_call<turn_simt_vf_0>(cce::dim3(64), p);\n", STORE, OUT)
AGAIN = body(IN, LOAD, "  again_simd_vf_0(p);\n", STORE, OUT).replace(
    "/*barrier*/", "asc_mem_bar(VST_VLD);"
)
NOTIFY = "  asc_sync_notify(PIPE_MTE2, PIPE_V, static_cast<event_t>(0));\n"

# The tile goes back to where it came from: what is not ordered with its store is not with its load.
FAULTS = {
    "load not waited for": (
        GOOD.replace(LOAD, ""),
        {"AK-RACE-001", "AK-RACE-002", "AK-RACE-003"},
    ),
    "store too early": (GOOD.replace(STORE, ""), {"AK-RACE-001", "AK-RACE-002"}),
    "loaded over what is still stored": (
        body(IN, LOAD, TWICE, STORE, OUT, IN, at=MINE),
        {"AK-RACE-001", "AK-RACE-002", "AK-RACE-003"},
    ),
    "reload of a store": (AGAIN.replace("asc_mem_bar(VST_VLD);", ""), {"AK-RACE-004"}),
    "scalar read too early": (
        SCALAR.replace(event("MTE2", "S"), ""),
        {"AK-RACE-001", "AK-RACE-002", "AK-RACE-003"},
    ),
    "scalar write too late": (SCALAR.replace(event("S", "MTE3"), ""), {"AK-RACE-001"}),
    "blocks on one tile": (body(IN, LOAD, TWICE, STORE, OUT, at="x"), {"AK-RACE-008"}),
    "threads without a barrier": (TURN.replace("  asc_syncthreads();\n", ""), {"AK-RACE-009"}),
    "set twice": (GOOD.replace(NOTIFY, NOTIFY * 2), {"AK-SYNC-010", "AK-SYNC-012"}),
    "set at the end": (
        body(IN, LOAD, TWICE, STORE, OUT, NOTIFY),
        {"AK-SYNC-010", "AK-SYNC-012"},
    ),
    "vector to itself": (body(IN, LOAD, TWICE, event("V", "V"), STORE, OUT), {"AK-SYNC-015"}),
    "lock kept": (
        body("  asc_lock(PIPE_MTE2, 3);\n", IN, LOAD, TWICE, STORE, OUT),
        {"AK-SYNC-012"},
    ),
}


def codes(text: str) -> set[str]:
    kernel = EmulatedKernel(text)
    kernel.launch([torch.zeros(128)], grid=2, check=True)
    return {f.code for f in kernel.findings if f.code.startswith(("AK-RACE", "AK-SYNC"))}


@pytest.mark.parametrize("text", [GOOD, SCALAR, TURN, AGAIN], ids=["event", "scalar", "simt", "vf"])
def test_correct_kernels_have_no_finding(text):
    assert codes(text) == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault):
    text, wanted = FAULTS[fault]
    kernel = EmulatedKernel(text)
    kernel.launch([torch.zeros(128)], grid=2, check=True)
    found = [f for f in kernel.findings if f.code.startswith(("AK-RACE", "AK-SYNC"))]
    assert {f.code for f in found} == wanted
    # No alarm about memory without its bytes and both places.
    assert all(f.bytes and f.site and f.other_site for f in found if "RACE" in f.code)


@pytest.mark.parametrize(
    "read, found",
    [
        ("p[0] = x[3];", {"AK-RACE-006"}),
        ("p[0] = (float)asc_load_dev((__gm__ uint32_t*)x + 3);", set()),
    ],
)
def test_what_another_block_wrote_may_be_stale_in_the_data_cache(read, found):
    barrier = "  }\n  asc_sync_inter_arrive(PIPE_MTE3, 1);\n  asc_sync_inter_wait(PIPE_S, 1);\n"
    last = f"  if (block_idx == 1) {read}\n"
    text = body(IN, LOAD, TWICE, STORE, "  if (block_idx == 0) {\n", OUT, barrier, last)
    assert codes(text) == found
    # In no order it is a race, however it is read.
    assert codes(text.replace("  asc_sync_inter_wait(PIPE_S, 1);\n", "")) >= {"AK-RACE-008"}


def test_a_race_names_lines_bytes_and_pipes():
    text = GOOD.replace(STORE, "")
    kernel = EmulatedKernel(text)
    kernel.launch([torch.zeros(64)], grid=1, check=True)
    (race,) = [f for f in kernel.findings if f.code == "AK-RACE-001"]
    lines = text.splitlines()
    assert "ub2gm" in lines[race.site - 1] and "vsts_norm" in lines[race.other_site - 1]
    assert (race.pipe, race.other_pipe, race.space) == ("MTE3", "V", "UB")
    assert (race.base, race.bytes, race.this_order) == (0, 256, False)


def test_copies_of_one_pipe_overlap_on_request_only():
    kernel = EmulatedKernel(body(IN, IN, LOAD, TWICE, STORE, OUT))
    for strict, wanted in ((False, set()), (True, {"AK-RACE-005"})):
        kernel.launch([torch.zeros(64)], grid=1, check=True, strict=strict)
        assert {f.code for f in kernel.findings if f.code.startswith("AK-RACE")} == wanted


def test_a_deadlock_says_what_was_set_last():
    kernel = EmulatedKernel(GOOD.replace(NOTIFY, ""))
    with pytest.raises(EmulatorError, match="which nobody has set") as error:
        kernel.launch([torch.zeros(64)], grid=1, check=True)
    assert error.value.code == "AK-DEADLOCK-001"


def test_scalar_and_simt_accesses_are_records():
    kernel = EmulatedKernel(SCALAR)
    records.read()
    kernel.launch([torch.zeros(64)], grid=1, trace=2)
    raw = [r for r in records.read() if r.name == "raw"]
    assert [(r.pipe, a.write, a.base, a.row_bytes) for r in raw for a in r.accesses] == [
        ("S", False, 8, 4),
        ("S", True, 12, 4),
    ]
    assert {"p[3]" in SCALAR.splitlines()[r.line - 1] for r in raw} == {True}
    kernel = EmulatedKernel(TURN)
    kernel.launch([torch.zeros(64)], grid=1, trace=2)
    raw = [r for r in records.read() if r.name == "raw"]
    touched = dict.fromkeys((False, True), 0)
    for r in raw:
        assert r.pipe == "V" and r.arguments[1] & 1
        touched[r.accesses[0].write] += r.accesses[0].rows * r.accesses[0].row_bytes
    assert touched == {False: 256, True: 256}


def blocks_meet(*parts: str, size: int) -> list[Finding]:
    text = HEAD.replace("float* x)", "float* x, __gm__ float* y)") + "".join(parts) + "}\n"
    x, y = torch.zeros(size), torch.zeros(size)
    return check(text, x, y, grid=8).findings


def test_each_buffer_that_blocks_meet_in_is_a_finding():
    store = OUT.replace("1, 256", "1, 4").replace("AT", "(i < 4 ? x : y)")
    loop = "  for (int32_t i = 0; i < 8; ++i) {\n" + store + "  }\n"
    found = blocks_meet(IN.replace("AT", "x"), STORE, loop, size=64)
    pairs = [f for f in found if f.code == "AK-RACE-008" and f.other.access == "write"]
    assert {(f.buffer, f.begin, f.end, f.count) for f in pairs} == {
        ("x", 0, 4, 28),
        ("y", 0, 4, 28),
    }


def test_a_finding_between_blocks_has_the_bytes_of_all_of_them():
    mine, next_one = "(y + 64 * block_idx)", "(y + 64 * ((block_idx + 1) % 8))"
    parts = IN.replace("AT", next_one), LOAD, TWICE, STORE, OUT.replace("AT", mine)
    (one,) = [f for f in blocks_meet(*parts, size=512) if f.code == "AK-RACE-008"]
    assert (one.buffer, one.begin, one.end, one.count, one.ranges) == ("y", 0, 2048, 8, ())
    # Every second block: what lies between is not meant.
    parts = "  if (block_idx < 4) return;\n", *parts
    gap = [p.replace("64 * (", "128 * (").replace("64 * b", "128 * b") for p in parts]
    (one,) = [f for f in blocks_meet(*gap, size=1024) if f.code == "AK-RACE-008"]
    assert one.count == 3 and one.ranges == ((2560, 2816), (3072, 3328), (3584, 3840))
    (line,) = [f for f in blocks_meet("  y[block_idx] = 1.0f;\n", size=64) if "RACE" in f.code]
    assert (line.code, line.begin, line.end, line.count) == ("AK-RACE-011", 0, 32, 56)
    assert line.detail.endswith("there, through its data cache too")
