"""The streaming CUDA kernel, compiled for this CPU: a fiber a thread, against plain torch."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from ascendkit.testing import SCORES, generator
from tests.topk.gpu_draw import draw, options
from tests.topk.gpu_model import build, select
from topk.radix_select import cuda_format, cuda_stream, visit
from topk.radix_select.reference import reference

CAPACITY = 2048
"""Of the layouts in gpu_model.cpp."""
LENGTHS = (1, 311, 1602, 4096, 9000, 20000, 33333)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build(tmp_path_factory.mktemp("model"))


def once(library: Any, seed: int) -> None:
    rng = random.Random(seed)
    dtype = rng.choice((torch.bfloat16, torch.bfloat16, torch.float16, torch.float32))
    n = rng.choice((*LENGTHS, rng.randint(1, max(LENGTHS))))
    rows = rng.choice((1, 2, 3))
    k = rng.choice((1, 2, 37, 512, 777, 1000, CAPACITY // 2, n // 2 + 1, n))
    k = min(k, CAPACITY // 2)
    order = rng.choice(("none", "sorted", "sorted_index"))
    cluster = rng.choice((1, 1, 4))
    x = draw(rng, rng.choice((*SCORES, "bits", "random", "random")), (rows, n), dtype)
    g = generator(seed)
    begin, end, offset, pages, size = options(rng, g, rows, n)
    about = (seed, dtype, cluster, n, rows, k, order, x.stride(0), begin, end)
    draws = torch.from_numpy(visit.table(256))
    values, indices = select(
        library, x, k, draws, order=order, begin=begin, end=end, offset=offset, pages=pages,
        page_size=size, wide=rng.random() < 0.5, cluster=cluster,
        teams=rows if cluster > 1 else rng.choice((1, rows)), seed=seed,
    )  # fmt: skip
    want_values, want = reference(
        x, k, order == "sorted", begin, end, None, order == "sorted_index", None, None, offset,
        page_table=pages, page_size=size,
    )  # fmt: skip
    word = torch.int32 if dtype == torch.float32 else torch.int16
    assert want_values is not None
    pairs = [(indices.long(), want), (values.view(word), want_values.view(word))]
    if order == "none":  # one order for both: by index, whatever a page table made of it
        ours, theirs = (
            indices.long().argsort(dim=-1, stable=True),
            want.argsort(dim=-1, stable=True),
        )
        pairs = [(a.gather(-1, ours), b.gather(-1, theirs)) for a, b in pairs]
    assert all(torch.equal(a, b) for a, b in pairs), about


@pytest.mark.parametrize("part", range(4))
def test_random_rows(library: Any, seed: int, part: int) -> None:
    for i in range(part, 72, 4):
        once(library, seed + i)


@pytest.mark.parametrize("size", (2, 4))
@pytest.mark.parametrize("rows", (1, 5, 16, 66, 132, 133, 4096))
def test_layouts_fit(size: int, rows: int) -> None:
    for topk in (1, 512, 513, 2048, 2049, 4096):
        made = cuda_stream.layout(rows, 1 << 20, topk, size, 132)
        assert made.shared_bytes(size) <= cuda_format.SHARED_OF_CTA[made.residents]
        assert made.stages(size) >= cuda_stream.MIN_STAGES
        assert made.capacity >= topk + 1024, "room for more than the best"
        assert made.block_bytes // size >= cuda_stream.SMALLEST_BLOCK, "the table of draws"
        assert 1 <= made.ctas(rows, 132) <= 2 * 132
