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


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32), ids=str)
def test_shares_cover_a_row_and_none_is_too_short(dtype: torch.dtype, seed: int) -> None:
    """A share with fewer elements than k would hand the merge fills as candidates."""
    page = ascend_program.PAGE["uint16" if dtype == torch.bfloat16 else "int32"]
    sizes = torch.randint(1, ascend.MAX_ROW, (40,), generator=generator(seed)).tolist()
    edges = [n + d for n in (ascend.MIN_SHARE, 3 * page, 50_000, ascend.MAX_ROW) for d in (-1, 0)]
    for row_len in (*sizes, *edges):
        x = torch.empty(2, row_len, dtype=dtype)
        for k in (1, 1024, 4096):
            splits = ascend._splits(x, k, 64)
            for row in ascend._ranges(x, None, None, splits).view(2, splits, 8).tolist():
                assert row[0][0] == 0 and row[-1][1] == row_len
                assert all(a[1] == b[0] for a, b in pairwise(row))
                assert all(r[0] % page == 0 for r in row)
                assert splits == 1 or all(r[1] - r[0] >= k for r in row), (row_len, k, row)


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


@emulated
@pytest.mark.emu
@pytest.mark.xdist_group("topk_emulator")
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float32), ids=str)
@pytest.mark.parametrize("low", (1.0, -8.0))
def test_both_filters_of_a_page(dtype: torch.dtype, low: float, seed: int) -> None:
    """Whole pages under a positive threshold, and all others, with NaN of either sign and ties."""
    g = generator(seed)
    word = torch.int32 if dtype == torch.float32 else torch.int16
    for values, k in ((5, 100), (4000, 3000)):
        # Of 50,000 elements, shares of equal pages but the last: that would be shorter than k.
        x = (low + torch.randint(0, values, (2, 50_000), generator=g) / values).to(dtype)
        at = torch.randint(0, x.shape[1], (2, 40), generator=g)
        x.scatter_(1, at, torch.nan)
        bits = x.view(word)
        bits.scatter_(1, at[:, ::2], bits.gather(1, at[:, ::2]) | torch.iinfo(word).min | 1)
        got = topk.topk(x, k, deterministic=True, platform="emulator")
        want = topk.topk(x, k, deterministic=True, platform="reference")
        assert torch.equal(got[1], want[1]), (values, k)
        assert torch.equal(got[0].view(word), want[0].view(word)), (values, k)
