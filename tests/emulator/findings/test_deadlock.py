"""What a deadlock says: the wait that holds up the others, and the set that is missing."""

from __future__ import annotations

import re

import pytest
import torch

pytest.importorskip("tilelang")

from ascendkit.emulator import check
from ascendkit.emulator.findings.deadlock import missing
from ascendkit.emulator.kernel import EmulatedKernel
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.corpus import mixed, vector

pytestmark = pytest.mark.emu
SET = "asc_sync_notify(PIPE_MTE2, PIPE_V, static_cast<event_t>(0));"
CALL = "asc_sync_notify(PIPE_MTE2, PIPE_V, 0)"


@pytest.fixture(scope="module")
def softmax():
    return LoweredKernel(vector.softmax_rows(3)).kernel_source


@pytest.fixture(scope="module")
def bias():
    return LoweredKernel(mixed.bias_relu(64, 64, 64)).kernel_source


def of_softmax(text):
    result = check(text, torch.randn(3, 128), torch.zeros(3, 128), grid=3)
    return result, [f for f in result.findings if f.code == "AK-DEADLOCK-001"]


def line_of(text, snippet):
    return next(n for n, row in enumerate(text.splitlines(), 1) if snippet in row)


def test_a_set_that_is_not_there_and_the_cure_cures(softmax):
    assert SET in softmax
    broken = softmax.replace(SET, "")
    _, (found,) = of_softmax(broken)
    assert "asc_sync_wait(PIPE_MTE2, PIPE_V" in found.here.text and found.here.pipe == "V"
    copy = line_of(broken, "asc_copy_gm2ub_align(")
    assert found.cure == (
        f"{CALL} is missing: put it behind line {copy}, which PIPE_MTE2 executes."
    )
    rows = broken.splitlines()
    rows.insert(copy, f"  {SET}")
    result, none = of_softmax("\n".join(rows))
    assert result.ok and not none and not result.findings


@pytest.mark.parametrize(
    "instead, says",
    [
        (SET.replace("(0)", "(3)"), "sets event 3 of these pipes, line {wait} waits for 0"),
        (
            SET.replace("PIPE_MTE2, PIPE_V", "PIPE_V, PIPE_MTE2"),
            f"the other way round: write {CALL}",
        ),
        (f"if (block_idx > 7) {SET}", "once more than the set of line {set} is reached"),
    ],
    ids=["another id", "swapped", "a branch"],
)
def test_a_set_that_was_meant_is_named(softmax, instead, says):
    broken = softmax.replace(SET, instead)
    _, (found,) = of_softmax(broken)
    lines = {
        "wait": line_of(broken, "asc_sync_wait(PIPE_MTE2, PIPE_V"),
        "set": line_of(broken, instead),
    }
    assert says.format(**lines) in found.cure
    assert found.other is not None and found.other.line == lines["set"]


def test_a_set_behind_its_wait(softmax):
    """The scalar core waits itself, so that it never comes to the set."""
    both = SET.replace("PIPE_V", "PIPE_S")
    wait = both.replace("notify", "wait")
    _, (found,) = of_softmax(softmax.replace(SET, f"{SET}\n  {wait}\n  {both}"))
    assert found.here.pipe == "S" and found.here.text == wait
    assert "which comes later: move it before the wait" in found.cure


def test_a_flag_between_cores(bias):
    kernel = EmulatedKernel(bias)
    given = {
        "a": torch.randn(64, 64).bfloat16(),
        "b": torch.randn(64, 64).bfloat16(),
        "bias": torch.randn(64),
        "c": torch.zeros(64, 64),
    }
    args = [given[p.name] for p in kernel.kernel.parameters]
    arrive = re.compile(r"asc_sync_intra_arrive\(PIPE_FIX, \d+\);")

    def cure(text):
        found = check(text, *args, grid=1).findings
        return next(f for f in found if f.code == "AK-DEADLOCK-001")

    found = cure(arrive.sub("", bias))
    assert "asc_sync_intra_wait" in found.here.text
    assert "asc_sync_intra_arrive(PIPE_..., 0) is missing: put it on the other core" in found.cure
    found = cure(bias.replace("asc_sync_intra_wait(PIPE_V, 0)", "asc_sync_intra_wait(PIPE_V, 5)"))
    assert "signals intra flag 0" in found.cure and "waits for 5" in found.cure


GRAPH = """no core can make progress:
  block 0 AIV0 (line 9) waits for its pipes to drain at the end of the kernel
  block 0 AIV0 PIPE_MTE3 (line 8) waits for event 0 from PIPE_V to PIPE_MTE3, which nobody has set
  block 0 AIV0 PIPE_V (line 4) waits for lock 3"""


def test_a_wait_behind_another_is_not_the_root():
    found = missing(GRAPH, ["asc_unlock(PIPE_V, 3, x);"])
    assert (found.wait.pipe, found.wait.what, found.line) == ("V", "lock 3", 1)
    assert "once more than the unlock of line 1 is reached" in found.cure
    assert "asc_unlock(PIPE_..., 3) is missing" in missing(GRAPH, []).cure
    assert missing("the time limit of this launch has passed", []) is None
