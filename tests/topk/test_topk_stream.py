"""The streaming CUDA kernel, compiled for this CPU: a fiber a thread, against plain torch."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from ascendkit.testing import SCORES, generator
from tests.topk.gpu_model import build, select
from tests.topk.test_topk_resident import draw
from topk.radix_select import cuda_format, visit
from topk.radix_select.reference import reference

CAPACITY, SMALLEST_BLOCK = 2048, 512
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
    begin = end = offset = pages = None
    if rng.random() < 0.3:
        begin = torch.randint(-2, n, (rows,), generator=g, dtype=torch.int32)
    if rng.random() < 0.3:
        end = torch.randint(-2, n + 3, (rows,), generator=g, dtype=torch.int32)
    if rng.random() < 0.2:
        offset = torch.randint(0, 9999, (rows,), generator=g, dtype=torch.int32)
    size = rng.choice((1, 7, 64))
    if rng.random() < 0.2:
        pages = torch.randperm(rows * -(-n // size), generator=g).view(rows, -1).to(torch.int32)
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
    for i in range(part, 120, 4):
        once(library, seed + i)


def test_a_cta_has_the_shared_memory_it_was_promised() -> None:
    for size in (2, 4):
        for capacity in (4096, 6144, 8192):
            for threads, cluster, residents in ((256, 1, 2), (512, 1, 1), (512, 8, 1)):
                layout = cuda_format.Layout(threads, 2, capacity, cluster, residents)
                assert layout.stages(size) >= 5
                assert layout.shared_bytes(size) <= cuda_format.SHARED_OF_CTA[residents]
