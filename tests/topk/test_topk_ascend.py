"""The Ascend program: what it takes of the Unified Buffer, how rows are cut, how few there are."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

import topk
from ascendkit import platform as platforms
from ascendkit.hardware import UB_BYTES_SIMT
from ascendkit.op import Case
from ascendkit.testing import generator
from topk.radix_select import ascend, ascend_program

emulated = pytest.mark.skipif(
    not platforms.available("emulator"), reason=str(platforms.available("emulator").reason)
)


@emulated
@pytest.mark.emu
@pytest.mark.xdist_group("topk_emulator")
@pytest.mark.parametrize("word", ("uint16", "int32"))
def test_the_unified_buffer_holds_every_k_and_row(word: str) -> None:
    """One program a word takes every k to 4096 and every row to 2^21."""
    from ascendkit.emulator.findings import fits

    (fit,) = fits.fits(ascend_program.program(word, 64))
    (memory,) = fit.memories
    assert fit.ok and memory.space == "UB" and not fit.simt
    assert memory.live <= memory.need == ascend_program.ub_bytes(word) <= UB_BYTES_SIMT
    for k in (512, 1024, 4096):
        assert ascend_program.limit(k) + ascend_program.PAGE[word] <= ascend_program.capacity(word)
    # 16-bit counters of the histogram instruction must hold every candidate.
    assert ascend_program.capacity(word) < 1 << 16
    assert ascend.MAX_ROW >= 1 << 21


def test_rows_beyond_the_order_are_declined() -> None:
    assert ascend.supports(Case("a", {"row_len": ascend.MAX_ROW}))
    assert "visit order" in ascend.supports(Case("a", {"row_len": ascend.MAX_ROW + 1})).reason


def test_shares_cover_a_row_and_start_at_pages() -> None:
    x = torch.empty(3, 100_001)
    ranges = ascend._ranges(x, None, None, 4).view(3, 4, 8)
    for row in ranges.tolist():
        assert row[0][0] == 0 and row[-1][1] == 100_001
        assert all(a[1] == b[0] for a, b in pairwise(row))
        assert all(r[0] % ascend_program.PAGE["int32"] == 0 and r[1] > r[0] for r in row)


@emulated
@pytest.mark.emu
@pytest.mark.xdist_group("topk_emulator")
def test_one_program_takes_every_k_and_order(seed: int) -> None:
    """A program costs seconds to lower and to compile; k and order are arguments of it."""
    ascend.kernel.cache_clear()
    x = torch.randn(2, 40_000, generator=generator(seed)).bfloat16()
    for k in (1, 513, 4096):
        for order in ("sorted", "sorted_index", "deterministic"):
            got = topk.topk(x, k, platform="emulator", **{order: True})
            want = topk.topk(x, k, platform="reference", **{order: True})
            assert torch.equal(got[1], want[1]), (k, order)
            assert torch.equal(got[0], want[0]), (k, order)
    topk.topk(x.half(), 9, platform="emulator")
    assert ascend.kernel.cache_info().currsize == 1
