"""Calling kernels: in place, from text, from a shell; and every way to call them wrongly."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import torch

import ascendkit
from ascendkit import emulator
from ascendkit.emulator import EmulatorError, SourceError
from ascendkit.emulator.kernel import EmulatedKernel
from tests.emulator.kernels import vector

pytestmark = pytest.mark.emu


@pytest.fixture(scope="module")
def add_kernel():
    with ascendkit.use("emulator"):
        return vector.add(1024)


def test_jit_kernel_runs_unmodified_and_allocates_its_output(add_kernel):
    a, b = torch.randn(2, 1024)
    with ascendkit.use("emulator"):
        assert torch.equal(add_kernel(a, b), a + b)
        assert vector.add(1024) is add_kernel


def test_outside_the_block_nothing_is_emulated(add_kernel):
    from tilelang.jit import JITKernel

    assert not isinstance(add_kernel, JITKernel)
    with pytest.raises(Exception, match=r"bisheng|[Aa]scend|CANN|device|NPU|compiler"):
        vector.add(1024)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_dynamic_rows_strides_and_a_scalar(rows):
    base = torch.randn(rows, 256)
    y = torch.zeros(rows, 128)
    with ascendkit.use("emulator"):
        kernel = vector.scale_rows(128)
        kernel(base[:, 64:192], y, 0.5)
        assert torch.equal(y, base[:, 64:192] * 0.5)
        kernel(base[:, :128].contiguous(), y, 2.0)
        assert torch.equal(y, base[:, :128] * 2.0)


def test_zero_rows_launch_nothing():
    with ascendkit.use("emulator"):
        vector.scale_rows(128)(torch.zeros(0, 128), torch.zeros(0, 128), 1.0)


def test_bool_tensors():
    a, b = torch.randint(0, 2, (2, 256), dtype=torch.int32)
    flags = torch.zeros(256, dtype=torch.bool)
    with ascendkit.use("emulator"):
        vector.not_equal(256)(a, b, flags)
    assert torch.equal(flags, a != b)


def test_warm_call_is_fast(add_kernel):
    a, b = torch.randn(2, 1024)
    with ascendkit.use("emulator"):
        add_kernel(a, b)
        best = min(_timed(lambda: add_kernel(a, b)) for _ in range(20))
    assert best < 5e-3  # the benchmark holds the real bound; this one survives a busy machine


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# ---- wrong calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, error, text",
    [
        (lambda: (torch.zeros(1024),), ValueError, "got 1, wanted 2 (a, b)"),
        (lambda: (torch.zeros(1024), torch.zeros(1000)), ValueError, r"shape\[0\].*got 1000"),
        (lambda: (torch.zeros(1024), torch.zeros(1024).half()), ValueError, "dtype mismatch"),
        (lambda: (torch.zeros(1024), torch.zeros(2048)[::2]), ValueError, "strides"),
        (lambda: (torch.zeros(1024), [0.0]), TypeError, "got list"),
        (lambda: (torch.zeros(1024), None), ValueError, "non-NULL"),
        (lambda: (torch.zeros(1024), torch.zeros(1024, device="meta")), TypeError, "wanted cpu"),
    ],
)
def test_wrong_arguments_are_told_before_the_launch(add_kernel, args, error, text):
    with (
        ascendkit.use("emulator"),
        pytest.raises(error, match=text.replace("(", r"\(").replace(")", r"\)")),
    ):
        add_kernel(*args())


def test_wrong_index_in_simt_code_is_an_exception_with_its_line():
    x, y = torch.randn(256), torch.zeros(32)
    index = torch.arange(32, dtype=torch.int32)
    with ascendkit.use("emulator"):
        kernel = vector.pick(256, 32)
        kernel(x, index, y)
        assert torch.equal(y, x[:32])
        index[7] = 100_000
        with pytest.raises(EmulatorError) as failure:
            kernel(x, index, y)
        assert failure.value.code == "AK-BOUNDS-001"
        assert failure.value.line > 0 and failure.value.text
        index[7] = 7
        kernel(x, index, y)  # the process and the kernel both survived
        assert torch.equal(y, x[:32])


SOURCE = """#include <tl_templates/ascend/common.h>
#include <tl_templates/ascend/debug.h>
extern "C" __global__ __vector__ void twice(__gm__ float* x, int32_t n) {
  asc_init();
  __ubuf__ float *buf = (__ubuf__ float *)0;
  asc_copy_gm2ub_align((__ubuf__ uint8_t*)buf, (__gm__ uint8_t*)x, 1, n * 4, 0, 0, 0, static_cast<asc_load_l2_cache_mode>(0), 0, 0);
  asc_sync();
  for (int32_t i = 0; i < n; ++i) {
    buf[i] = BODY;
  }
  asc_sync();
  asc_copy_ub2gm_align((__gm__ uint8_t*)x, (__ubuf__ uint8_t*)buf, 1, n * 4, static_cast<asc_store_l2_cache_mode>(4), 0, 0);
}
"""  # noqa: E501


def test_source_text_runs():
    x = torch.randn(100)
    want = 2 * x
    result = emulator.run(SOURCE.replace("BODY", "buf[i] * 2.0f"), x, 100, grid=1)
    assert torch.equal(result.outputs[0], want) and result.kernel == "twice"


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int16, torch.int32])
def test_source_text_refuses_elements_of_another_type(dtype):
    text = SOURCE.replace("BODY", "1.0f")
    with pytest.raises(TypeError, match=r"x: got \w+, wanted float32 for float\*"):
        emulator.run(text, torch.zeros(8, dtype=dtype), 8, grid=1)


def test_a_host_without_a_compiler_says_what_to_install(tmp_path):
    path = tmp_path / "twice.asc"
    path.write_text(SOURCE.replace("BODY", "1.0f"))
    command = [sys.executable, "-m", "ascendkit.emulator", "run", str(path), "--grid", "1"]
    done = subprocess.run(
        [*command, "--arg", "x=float32[8]=zeros", "--arg", "n=8"],
        env={**os.environ, "PATH": str(tmp_path), "ASCENDKIT_JIT_CACHE_DIR": str(tmp_path / "c")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "no C++ compiler" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "edit, text",
    [
        (
            lambda s: s.replace("tl_templates/ascend/common.h", "kernel_operator.h"),
            "kernel_operator",
        ),
        (lambda s: s.replace("tl_templates/ascend", "tl_templates/cuda"), "CUDA"),
        (lambda s: s + "// for dav-2201\n", "dav-3510"),
        (lambda s: s.replace('extern "C" __global__', "static"), "no kernel found"),
        (lambda s: "int main() {}", "common.h"),
    ],
)
def test_foreign_source_says_what_to_do(edit, text):
    with pytest.raises(SourceError, match=text):
        emulator.run(edit(SOURCE.replace("BODY", "1.0f")), torch.zeros(8), 8, grid=1)


def test_an_unknown_instruction_is_named():
    with pytest.raises(SourceError, match="asc_dance is unknown"):
        emulator.run(SOURCE.replace("BODY", "asc_dance(buf[i])"), torch.zeros(8), 8, grid=1)


def test_an_unknown_form_of_an_instruction_is_named():
    text = SOURCE.replace("  asc_sync();", "  asc_lock(PIPE_V);", 1).replace("BODY", "1.0f")
    with pytest.raises(SourceError, match="asc_lock"):
        emulator.run(text, torch.zeros(8), 8, grid=1)


FAULT_AFTER_FAULTHANDLER = """
import faulthandler, sys, torch
from ascendkit import emulator
source = sys.stdin.read()
faulthandler.disable()
for _ in range(2):
    try:
        emulator.run(source, torch.zeros(8), 8, grid=1)
    except emulator.EmulatorError as error:
        print(error.code)
    faulthandler.enable()  # what a test runner does between tests
"""


def test_faults_are_exceptions_after_another_handler_was_installed():
    done = subprocess.run(
        [sys.executable, "-c", FAULT_AFTER_FAULTHANDLER],
        input=SOURCE.replace("BODY", "*(float*)(long)(i + 4)"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["AK-BOUNDS-001"] * 2, done.stderr


@pytest.mark.parametrize(
    "body, code",
    [
        ("buf[i + (1 << 20)]", "AK-BOUNDS-001"),
        ("*(float*)(long)(i + 4)", "AK-BOUNDS-001"),
        ("float(7 / (n - 8))", "AK-ARITH-001"),
        ("(assert(i < 3), 1.0f)", "AK-ASSERT-001"),
        ("(asc_copy_gm2ub_align((uint8_t*)buf, (uint8_t*)x + 32, 1, 32, 0, 0, 0, "
         "static_cast<asc_load_l2_cache_mode>(0), 0, 0), 1.0f)", "AK-BOUNDS-002"),
        ("(asc_copy_gm2ub_align((uint8_t*)buf + 262144, (uint8_t*)x, 1, 32, 0, 0, 0, "
         "static_cast<asc_load_l2_cache_mode>(0), 0, 0), 1.0f)", "AK-BOUNDS-003"),
        ("(asc_copy_gm2ub_align((uint8_t*)buf + 8, (uint8_t*)x, 1, 32, 0, 0, 0, "
         "static_cast<asc_load_l2_cache_mode>(0), 0, 0), 1.0f)", "AK-ALIGN-001"),
        ("(asc_sync_wait(PIPE_V, PIPE_S, static_cast<event_t>(0)), 1.0f)", "AK-DEADLOCK-001"),
        ("(asc_sync_notify(PIPE_V, PIPE_S, static_cast<event_t>(8)), 1.0f)", "AK-SYNC-001"),
        ("(asc_sync_intra_arrive(PIPE_V, 1), 1.0f)", "AK-SYNC-004"),
    ],
)  # fmt: skip
def test_faults_are_exceptions(body, code):
    with pytest.raises(EmulatorError) as failure:
        emulator.run(SOURCE.replace("BODY", body), torch.zeros(8), 8, grid=1)
    assert failure.value.code == code
    assert code == "AK-DEADLOCK-001" or failure.value.core == "block 0 AIV0"
    emulator.run(SOURCE.replace("BODY", "1.0f"), torch.zeros(8), 8, grid=1)


@pytest.mark.parametrize(
    "body",
    [
        "({ while (asc_load_dev((uint32_t*)x) == 0) {} 1.0f; })",
        '({ while (n) { asm volatile(""); } 1.0f; })',
        "({ while (n) asc_sync_pipe(PIPE_ALL); 1.0f; })",
        "({ while (n) { asc_sync_notify(PIPE_V, PIPE_S, static_cast<event_t>(0)); "
        "asc_sync_wait(PIPE_V, PIPE_S, static_cast<event_t>(0)); } 1.0f; })",
    ],
    ids=["polls", "scalar", "barrier", "event"],
)
def test_an_endless_kernel_ends_at_its_limit(body):
    start = time.perf_counter()
    with pytest.raises(EmulatorError, match=r"time limit of 0\.5 s passed") as error:
        emulator.run(SOURCE.replace("BODY", body), torch.zeros(8), 8, grid=1, timeout_s=0.5)
    assert error.value.code == "AK-DEADLOCK-002"
    assert time.perf_counter() - start < 30


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_limit_is_not_negative(seconds):
    with pytest.raises(ValueError, match=r"timeout_s: got .*, wanted 0"):
        text = SOURCE.replace("BODY", "1.0f")
        emulator.run(text, torch.zeros(8), 8, grid=1, timeout_s=seconds)


@pytest.mark.parametrize("grid, cores", [(-1, 32), (1, 0), (1, 5000)])
def test_grid_and_cores_have_limits(grid, cores):
    kernel = EmulatedKernel(SOURCE.replace("BODY", "1.0f"))
    with pytest.raises(ValueError, match="wanted"):
        kernel.launch([torch.zeros(8), 8], grid=grid, cores=cores)


def test_command_line(tmp_path):
    path = tmp_path / "twice.asc"
    path.write_text(SOURCE.replace("BODY", "buf[i] * 2.0f"))
    command = [sys.executable, "-m", "ascendkit.emulator", "run", str(path), "--grid", "1"]
    values = ["--arg", "x=float32[10]=arange", "--arg", "n=10", "--save", str(tmp_path)]
    done = subprocess.run([*command, *values], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sum 90" in done.stdout
    assert (tmp_path / "x.npy").exists()
    failed = subprocess.run([*command, "--arg", "y=1"], capture_output=True, text=True)
    assert failed.returncode == 2 and "wanted one of n, x" in failed.stderr
