"""Launches that cannot go on end within a second, and say who waits for which flag of whom."""

from __future__ import annotations

import re
import time

import pytest
import torch

from ascendkit.emulator import EmulatorError
from ascendkit.emulator.kernel import EmulatedKernel

pytestmark = pytest.mark.emu
LIMIT_S = 1.0
SET, WAIT = (
    f"asc_sync_{x}(PIPE_V, PIPE_MTE3, static_cast<event_t>(2));" for x in ("notify", "wait")
)
# Name: what the kernel does, and what its report says.
CASES = {
    "event": (
        f"{SET}\n{WAIT}\n{WAIT}",
        r"AIV0 PIPE_MTE3 \(line \d+\) waits for event 2 from PIPE_V to PIPE_MTE3, last set at line "
        r"\d+ and taken at line \d+",
    ),
    "flag of a core": (
        "if (ASC_IS_AIV) asc_sync_intra_wait(PIPE_V, 3);",
        r"AIV1 PIPE_V \(line \d+\) waits for asc_sync_intra_wait flag 3 of AIC, which nobody has "
        "signalled",
    ),
    "flag of a vector core": (
        "if (ASC_IS_AIC) asc_sync_intra_wait(PIPE_FIX, 19);",
        r"AIC PIPE_FIX \(line \d+\) waits for asc_sync_intra_wait flag 19 of AIV1",
    ),
    "barrier of all cores": (
        "if (ASC_IS_AIC && block_idx != 1) {\nasc_sync_inter_arrive(PIPE_FIX, 5);\n"
        "asc_sync_inter_wait(PIPE_FIX, 5);\n}",
        r"block 0 AIC PIPE_FIX \(line \d+\) waits for asc_sync_inter_wait flag 5 of all 3 cube "
        r"cores, of which 1 have not arrived \(1\)",
    ),
    "barrier of a core": (
        f"if (ASC_IS_AIV) {{\n{WAIT}\nasc_sync();\n}}",
        r"AIV0 \(line \d+\) waits for all pipes to drain \(asc_sync\): PIPE_MTE3 at line \d+",
    ),
    "lock": (
        f"{WAIT}\nasc_lock(PIPE_MTE3, 7);\nasc_unlock(PIPE_MTE3, 7);\nasc_lock(PIPE_V, 7);\n"
        "asc_unlock(PIPE_V, 7);",
        r"AIV0 PIPE_V \(line \d+\) waits for lock 7, to be given back by PIPE_MTE3 at line \d+",
    ),
    "word of global memory": (
        "while (asc_load_dev((__gm__ uint32_t*)x) == 0) {\n}",
        "cores spin on global memory that nobody will write",
    ),
}


@pytest.fixture(scope="module")
def kernel():
    cases = "".join(f"case {i}: {{\n{c[0]}\nbreak;\n}}\n" for i, c in enumerate(CASES.values()))
    return EmulatedKernel(
        "#include <tl_templates/ascend/common.h>\n#include <tl_templates/ascend/debug.h>\n"
        'extern "C" __global__ __mix__(1, 2) void stuck(__gm__ float* x, int32_t which) {\n'
        f"asc_init();\nswitch (which) {{\n{cases}}}\n}}\n"
    )


def stop(kernel, name, **options):
    with pytest.raises(EmulatorError) as error:
        kernel.launch([torch.zeros(8), list(CASES).index(name)], grid=3, **options)
    assert error.value.code == "AK-DEADLOCK-001"
    return error.value


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_who_waits_for_what_within_a_second(kernel, name, threads):
    kernel.launch([torch.zeros(8), -1], grid=3)  # compiles, and warms up
    best = float("inf")
    for _ in range(3):  # the host may be busy: one of three
        start = time.perf_counter()
        error = stop(kernel, name, threads=threads)
        best = min(best, time.perf_counter() - start)
        if best < LIMIT_S:
            break
    assert best < LIMIT_S
    assert re.search(CASES[name][1], error.message), error.message


@pytest.mark.parametrize("name", list(CASES)[:-1])
def test_waits_are_findings_with_the_last_set(kernel, name):
    stop(kernel, name, check=True)
    waits = [f for f in kernel.findings if f.code == "AK-SYNC-011"]
    assert waits and all(f.site and f.detail.startswith("waits for ") for f in waits)
    assert any(f.other_site for f in waits) == (name in ("event", "lock"))


HEAD = (
    "#include <tl_templates/ascend/common.h>\n#include <tl_templates/ascend/debug.h>\n"
    'extern "C" __global__ __vector__ void alone(__gm__ float* x, int32_t endless) {\nasc_init();\n'
)


@pytest.mark.parametrize(
    "endless, limit, wanted",
    [
        (1, 0.3, r"limit of 0.3 s passed and block 0 AIV0 had not come .* no instruction; \d of 3"),
        (0, 1e-9, r"limit of 1e-09 s passed.* progress.*of 3 blocks had ended"),
    ],
)
def test_a_limit_that_passes_is_told_from_a_deadlock(endless, limit, wanted):
    kernel = EmulatedKernel(
        HEAD + 'if (block_idx == 0) while (endless) asm volatile("");\n'
        "asc_sync_pipe(PIPE_ALL);\n}\n"
    )
    with pytest.raises(EmulatorError) as error:
        kernel.launch([torch.zeros(8), endless], grid=3, timeout_s=limit, check=True, threads=1)
    assert error.value.code == "AK-DEADLOCK-002"
    assert re.search(wanted, error.value.message), error.value.message
    if endless:
        assert error.value.line and error.value.core == "block 0 AIV0"


@pytest.mark.parametrize("check", [False, True])
def test_a_loop_of_nothing_names_its_core_and_function(check):
    kernel = EmulatedKernel("\n" + HEAD + "if (block_idx == 0) while (true) {}\n}\n")
    with pytest.raises(EmulatorError) as error:
        kernel.launch([torch.zeros(8), 0], grid=3, timeout_s=0.3, check=check)
    assert (error.value.code, error.value.core) == ("AK-DEADLOCK-002", "block 0 AIV0")
    assert 4 <= error.value.line <= 6 and error.value.text
