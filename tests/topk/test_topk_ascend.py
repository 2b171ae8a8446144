"""The Ascend program: what it takes of the Unified Buffer, and what it selects on the emulator."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

import topk
from ascendkit import platform as platforms
from ascendkit.op import Case
from ascendkit.testing import scores
from topk.radix_select import ascend, ascend_program

emulated = pytest.mark.skipif(
    not platforms.available("emulator"), reason=str(platforms.available("emulator").reason)
)


@pytest.mark.parametrize("num_topk", (1, 512, 1024, 4096))
@pytest.mark.parametrize("dtype", ("bfloat16", "float32"))
def test_the_unified_buffer_holds_it(num_topk: int, dtype: str) -> None:
    tiles = ascend.MAX_ROW // ascend_program.TILE
    assert ascend_program.ub_bytes(dtype, num_topk, tiles) <= ascend.UB_BYTES
    # 16-bit counters of the histogram instruction must hold every candidate.
    assert ascend_program.capacity(num_topk) < 1 << 16


def test_rows_beyond_the_order_are_declined() -> None:
    assert ascend.supports(Case("a", {"row_len": ascend.MAX_ROW}))
    assert "visit order" in ascend.supports(Case("a", {"row_len": ascend.MAX_ROW + 1})).reason


def test_shares_cover_a_row_and_start_at_pages() -> None:
    x = torch.empty(3, 100_001)
    ranges = ascend._ranges(x, None, None, 4).view(3, 4, 8)
    for row in ranges.tolist():
        assert row[0][0] == 0 and row[-1][1] == 100_001
        assert all(a[1] == b[0] for a, b in pairwise(row))
        assert all(r[0] % ascend_program.TILE == 0 and r[1] > r[0] for r in row)


@emulated
@pytest.mark.emu
def test_selects_on_the_emulator(seed: int) -> None:
    """One program (bf16, k = 100, by index), kinds of values, and a row cut into shares."""
    end = torch.tensor([0, 100, 2500], dtype=torch.int32)
    for kind in ("random", "ties", "nan", "minus_inf", "signed_zeros", "all_equal"):
        x = scores(kind, (3, 2500), seed, torch.bfloat16)
        for kwargs in ({}, {"end": end}):
            got = topk.topk(x, 100, sorted_index=True, platform="emulator", **kwargs)
            want = topk.topk(x, 100, sorted_index=True, platform="reference", **kwargs)
            assert torch.equal(got[1], want[1]), (kind, kwargs)
            assert torch.equal(got[0].view(torch.int16), want[0].view(torch.int16)), kind
