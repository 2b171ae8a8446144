"""Synchronisation that users lost days to, as classes of input; the finding says what is wrong."""

from __future__ import annotations

import pytest
import torch

from ascendkit.emulator import EmulatorError
from ascendkit.emulator.kernel import EmulatedKernel
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.corpus import simt, vector
from tests.emulator.kernels import mixed

pytestmark = pytest.mark.emu


def codes(text, args, **options):
    """Codes of findings, and of the error that ends the launch."""
    kernel = EmulatedKernel(text)
    found = []
    try:
        kernel.launch(args, grid=1, check=True, timeout_s=5, **options)
    except EmulatorError as error:
        found.append(error.code)
    return found + [f.code for f in kernel.findings]


def test_v_to_v_event_is_reported_and_never_hangs():
    """tilelang-ascend PR 1458: an event from V to V behind a fence hangs a 950."""
    text = LoweredKernel(vector.single_buffer(2)).kernel_source
    wait = next(row for row in text.splitlines() if "asc_sync_wait(PIPE_MTE2, PIPE_V" in row)
    event = "asc_sync_{}(PIPE_V, PIPE_V, static_cast<event_t>(0));"
    pair = wait + " " + event.format("notify") + " " + event.format("wait")
    x, y = torch.randn(2, 128), torch.zeros(2, 128)
    assert codes(text, [x, y]) == []
    assert "AK-SYNC-015" in codes(text.replace(wait, pair), [x, y])
    alone = wait + " " + event.format("wait")
    assert "AK-DEADLOCK-001" in codes(text.replace(wait, alone), [x, y])


def test_two_cross_core_protocols_on_one_kernel_leave_flags_up():
    """tilelang-ascend 1825: derived synchronisation mixed with a hand-written set."""
    text = LoweredKernel(mixed.gemm_relu_scale(64, 64, 64)).kernel_source
    arrive = next(row for row in text.splitlines() if "asc_sync_intra_arrive(PIPE_FIX, 0)" in row)
    a, b, c = torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16(), torch.zeros(64, 64)
    assert codes(text, [a, b, c]) == []
    assert "AK-SYNC-012" in codes(text.replace(arrive, arrive + arrive), [a, b, c])


@pytest.mark.parametrize("active", [32, 48, 64])
def test_barrier_dropped_for_a_partial_guard(active):
    """tilelang 2556: 48 of 64 threads write, others read; without the barrier it is a race."""
    text = LoweredKernel(simt.mask_of_48(64, active)).kernel_source
    x, y = torch.randn(64), torch.zeros(64)
    assert codes(text, [x, y]) == []
    without = text.replace("asc_syncthreads();", "")
    assert "AK-RACE-009" in codes(without, [x, y])
