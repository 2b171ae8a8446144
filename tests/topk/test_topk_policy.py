"""The table of docs/topk.md, line by line, the same test on every platform that runs here.

What must come out is written down, not computed by another implementation. ``streaming`` is the
NumPy form of the algorithm with small blocks, so that every row sees several and compacts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import topk
from ascendkit import platform as platforms
from ascendkit.testing import generator
from tests.topk.streamed import streamed

F = 2**31 - 1
INF, NAN = float("inf"), float("nan")
TINY, LONG = 24, 40_000
"""A row of one page, and one that the emulator's vector cores share."""

emulated = platforms.available("emulator")
gpu = platforms.available("cuda")
WHERE = [
    "reference",
    "streaming",
    pytest.param(
        "emulator",
        marks=[
            pytest.mark.emu,
            pytest.mark.skipif(not emulated, reason=str(emulated.reason)),
            pytest.mark.xdist_group("topk_emulator"),
        ],
    ),
    pytest.param(
        "cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not gpu, reason=str(gpu.reason))]
    ),
]
everywhere = pytest.mark.parametrize("where", WHERE)
dtypes = pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float32), ids=str)
lengths = pytest.mark.parametrize("row_len", (TINY, LONG))


def select(where: str, x: torch.Tensor, k: int, **kwargs: Any) -> tuple[Any, Any]:
    """``topk.topk`` on a platform; results on the CPU."""
    if where == "streaming":
        return streamed(x, k, **kwargs)
    if where == "cuda":
        stride, offset = x.stride(), x.storage_offset()
        x = torch.empty_like(x.as_strided((offset + _extent(x),), (1,), 0)).copy_(
            x.as_strided((offset + _extent(x),), (1,), 0)
        ).cuda().as_strided(x.shape, stride, offset)  # fmt: skip
        kwargs = {n: v.cuda() if isinstance(v, torch.Tensor) else v for n, v in kwargs.items()}
    values, indices = topk.topk(x, k, platform=where, **kwargs)
    return (None if values is None else values.cpu()), indices.cpu()


def _extent(x: torch.Tensor) -> int:
    return sum((n - 1) * s for n, s in zip(x.shape, x.stride())) + 1


def row_of(dtype: torch.dtype, row_len: int, *specials: float) -> tuple[torch.Tensor, list[int]]:
    """One row of -9 with ``specials`` spread over it, ends included, and where they are."""
    at = np.linspace(0, row_len - 1, len(specials)).astype(int).tolist()
    x = torch.full((1, row_len), -9.0, dtype=dtype)
    for i, value in zip(at, specials):
        x[0, i] = value
    return x, at


def bits(t: torch.Tensor) -> list[Any]:
    return t.contiguous().view(torch.int32 if t.element_size() == 4 else torch.int16).tolist()


def int32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@everywhere
@dtypes
@lengths
def test_nan_is_above_inf_whatever_its_bits(where: str, dtype: torch.dtype, row_len: int) -> None:
    x, at = row_of(dtype, row_len, 1.0, NAN, INF, NAN, 3.0, NAN)
    word = torch.int32 if dtype == torch.float32 else torch.int16
    x.view(word)[0, at[1]] |= 3  # another payload
    x.view(word)[0, at[5]] |= torch.iinfo(word).min  # another sign
    values, indices = select(where, x, 5, sorted=True)
    want = [at[i] for i in (1, 3, 5, 2, 4)]
    assert indices.tolist() == [want]
    assert bits(values) == bits(x[:, want]), "values come back with the bits they have"


@everywhere
def test_nan_raises_where_asked(where: str) -> None:
    x, at = row_of(torch.float32, TINY, 1.0, NAN, 2.0)
    with pytest.raises(ValueError, match=f"1 NaN candidates, the first at row 0, index {at[1]}"):
        select(where, x, 2, on_nan="raise")
    _, indices = select(where, x, 1, on_nan="raise", begin=int32(at[1] + 1))
    assert indices.tolist() == [[at[2]]], "a NaN outside the range is no candidate"


@everywhere
@dtypes
@lengths
def test_minus_zero_equals_zero_and_keeps_its_sign(
    where: str, dtype: torch.dtype, row_len: int
) -> None:
    x, at = row_of(dtype, row_len, -0.0, 0.0, -0.0, 0.0)
    values, indices = select(where, x, 3, sorted=True)
    assert indices.tolist() == [at[:3]]
    assert bits(values) == bits(x[:, at[:3]])


@everywhere
@dtypes
def test_infinities_are_ordinary(where: str, dtype: torch.dtype) -> None:
    x, at = row_of(dtype, TINY, -INF, 1.0, INF, -INF)
    x[x == -9] = -INF
    values, indices = select(where, x, 4, sorted=True)
    assert indices.tolist() == [[at[2], at[1], 0, 1]]
    assert values.tolist() == [[INF, 1.0, -INF, -INF]]
    # Padding is never a candidate: two of -inf, then fill values.
    values, indices = select(where, x, 4, sorted=True, begin=int32(1), end=int32(3))
    assert indices.tolist() == [[1, 2, F, F]]
    assert values.tolist() == [[-INF] * 4]


@everywhere
@dtypes
@lengths
@pytest.mark.parametrize("tie_break", ("any", "smallest_index"))
def test_the_smaller_of_equal_values_wins(
    where: str, dtype: torch.dtype, row_len: int, tie_break: str
) -> None:
    x, at = row_of(dtype, row_len, 5.0, 5.0, 5.0, 9.0, 5.0)
    values, indices = select(where, x, 3, sorted=True, tie_break=tie_break)
    assert indices.tolist() == [[at[3], at[0], at[1]]]
    assert values.tolist() == [[9.0, 5.0, 5.0]]


@everywhere
@pytest.mark.parametrize("begin, end", [(3, 3), (4, 2), (0, 0), (0, -5), (TINY, TINY)])
def test_an_empty_range_is_all_fill(where: str, begin: int, end: int) -> None:
    x = torch.randn(2, TINY).bfloat16()
    values, indices = select(where, x, 3, begin=int32(begin, 0), end=int32(end, TINY))
    assert indices[0].tolist() == [F] * 3 and values[0].tolist() == [-INF] * 3
    assert F not in indices[1].tolist()


@everywhere
@pytest.mark.parametrize("indices_type", (torch.int32, torch.int64), ids=str)
def test_fewer_candidates_than_k(where: str, indices_type: torch.dtype) -> None:
    x, _ = row_of(torch.float32, TINY, 1.0, 2.0, 3.0)
    values, indices = select(
        where, x, 5, sorted=True, begin=int32(10), end=int32(13), indices_type=indices_type,
        output_idx_offset=int32(100), idx_oob_fill_value=-7, value_oob_fill_value=0.5,
    )  # fmt: skip
    assert indices.dtype == indices_type
    assert indices.tolist() == [[111, 110, 112, -7, -7]], "the fill is never offset"
    assert values.tolist() == [[2.0, -9.0, -9.0, 0.5, 0.5]]
    _, indices = select(where, x[:, :3], 5, sorted_index=True)
    assert indices.tolist() == [[0, 1, 2, F, F]], "k above the row"


@everywhere
@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"end": int32(TINY + 1)}, rf"end\[0\]: got {TINY + 1}, wanted at most row_len {TINY}"),
        ({"begin": int32(-1)}, r"begin\[0\]: got -1, wanted at least 0"),
    ],
)
def test_ranges_beyond_the_row(where: str, kwargs: dict[str, Any], message: str) -> None:
    x, at = row_of(torch.bfloat16, TINY, 4.0, 1.0, 6.0)
    with pytest.raises(ValueError, match=message):
        select(where, x, 2, check_values=True, **kwargs)
    if where != "cuda":
        with pytest.raises(ValueError, match=message):
            select(where, x, 2, **kwargs)
    _, indices = select(where, x, 2, sorted=True, check_values=False, **kwargs)
    assert indices.tolist() == [[at[2], at[0]]], "unchecked ranges are clamped to the row"


@everywhere
def test_offsets_and_wide_indices(where: str) -> None:
    x, at = row_of(torch.bfloat16, TINY, 4.0, 1.0, 6.0)
    offset = int32(2**31 - 2)
    with pytest.raises(ValueError, match="output_idx_offset"):
        select(
            where, x, 2, output_idx_offset=offset, indices_type=torch.int32, check_values=True
        )  # fmt: skip
    _, indices = select(where, x, 2, sorted=True, output_idx_offset=offset)
    assert indices.dtype == torch.int64
    assert indices.tolist() == [[2**31 - 2 + at[2], 2**31 - 2 + at[0]]]
    _, indices = select(
        where, x, 2, sorted=True, output_idx_offset=int32(-3), indices_type=torch.int32
    )  # fmt: skip
    assert indices.dtype == torch.int32 and indices.tolist() == [[at[2] - 3, at[0] - 3]]


@everywhere
@dtypes
@lengths
def test_orders(where: str, dtype: torch.dtype, row_len: int, seed: int) -> None:
    x, at = row_of(dtype, row_len, 4.0, 1.0, 6.0, 2.0, 5.0)
    best = [at[2], at[4], at[0]]
    values, indices = select(where, x, 3)
    assert sorted(indices[0].tolist()) == sorted(best)
    assert values.tolist() == x[:, indices[0]].tolist(), "the same order in values and indices"
    assert select(where, x, 3, sorted=True)[1].tolist() == [best]
    assert select(where, x, 3, sorted_index=True)[1].tolist() == [sorted(best)]
    none, again = select(where, x, 3, deterministic=True, return_value=False)
    assert none is None and again.tolist() == [sorted(best)]
    noise = torch.randint(0, 9, (2, row_len), generator=generator(seed)).to(dtype)
    one, two = (select(where, noise, 50, deterministic=True) for _ in range(2))
    assert bits(one[0]) == bits(two[0]) and one[1].tolist() == two[1].tolist()


@everywhere
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32), ids=str)
def test_strides(where: str, dtype: torch.dtype) -> None:
    """Rows apart by an odd number of elements, from an odd base, with larger values beside."""
    room = torch.full((3, TINY + 13), INF, dtype=dtype)
    x = room[:, 5 : 5 + TINY]
    for r in range(3):
        x[r] = row_of(dtype, TINY, 1.0, 2.0 + r, 3.0)[0]
    values, indices = select(where, x, 2, sorted=True)
    at = row_of(dtype, TINY, 1.0, 2.0, 3.0)[1]
    assert indices.tolist() == [[at[2], at[1]], [at[1], at[2]], [at[1], at[2]]]
    assert values.tolist() == [[3.0, 2.0], [3.0, 3.0], [4.0, 3.0]]


@everywhere
@lengths
@pytest.mark.parametrize("page_size", (1, 7, 64))
def test_pages_and_ragged_rows(where: str, row_len: int, page_size: int) -> None:
    x, at = row_of(torch.bfloat16, row_len, 4.0, 1.0, 6.0)
    pages = -(-row_len // page_size)
    table = torch.arange(pages, 0, -1, dtype=torch.int32)[None] * 2  # page p is at 2 (pages - p)
    slots = [2 * (pages - i // page_size) * page_size + i % page_size for i in at]
    kwargs = {"page_table": table, "page_size": page_size, "idx_oob_fill_value": -1}
    _, indices = select(where, x, 3, sorted=True, **kwargs)
    assert indices.tolist() == [[slots[2], slots[0], slots[1]]]
    ragged = {"end": int32(1), "output_idx_offset": int32(1000)}
    _, indices = select(where, x, 3, sorted_index=True, **kwargs, **ragged)
    assert indices.tolist() == [[slots[0] + 1000, -1, -1]], "the table first, then the offset"
