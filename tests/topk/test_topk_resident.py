"""The resident CUDA kernels, compiled for this CPU: a fiber a thread, against plain torch."""

from __future__ import annotations

import ctypes
import random
import subprocess
from typing import Any

import pytest
import torch

from ascendkit.testing import SCORES, generator
from tests.topk.gpu_draw import draw, options
from tests.topk.gpu_model import HERE, SOURCES, select
from topk.radix_select import cuda_resident
from topk.radix_select.reference import reference

ROOM = 5120
"""Elements of a CTA in gpu_resident.cpp."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("model") / "gpu_resident.so"
    command = ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-w", f"-I{SOURCES}", f"-I{HERE}"]
    subprocess.run([*command, str(HERE / "gpu_resident.cpp"), "-o", str(out)], check=True)
    return ctypes.CDLL(str(out))


def once(library: Any, seed: int) -> None:
    rng = random.Random(seed)
    dtype = rng.choice((torch.bfloat16, torch.bfloat16, torch.float16, torch.float32))
    cluster = rng.choice((1, 1, 4))
    longest = ROOM * cluster
    n = rng.choice((1, 31, 32, 33, 300, 1024, 2047, 4096, rng.randint(1, longest), longest))
    rows = rng.choice((1, 2)) if cluster == 1 else 1
    k = rng.choice((1, 2, 37, 512, 1000, 1024, n, n + 1, max(n - 1, 1), n // 2 + 1))
    k = min(k, 1024)
    order = rng.choice(("none", "sorted", "sorted_index"))
    x = draw(rng, rng.choice((*SCORES, "bits", "few", "few", "random")), (rows, n), dtype)
    g = generator(seed)
    begin, end, offset, pages, size = options(rng, g, rows, n)
    about = (seed, dtype, cluster, n, rows, k, order, x.stride(0), begin, end)
    values, indices = select(
        library, x, k, torch.zeros(2, dtype=torch.int32), order=order, begin=begin, end=end,
        offset=offset, pages=pages, page_size=size, cluster=cluster, seed=seed,
    )  # fmt: skip
    # Unordered rows come by index, so every order can be compared place by place.
    by_index = order != "sorted"
    want_values, want = reference(
        x, k, not by_index, begin, end, None, by_index, None, None, offset,
        page_table=pages, page_size=size,
    )  # fmt: skip
    assert torch.equal(indices, want), about
    word = torch.int32 if dtype == torch.float32 else torch.int16
    assert want_values is not None
    assert torch.equal(values.view(word), want_values.view(word)), about


@pytest.mark.parametrize("part", range(4))
def test_random_rows(library: Any, seed: int, part: int) -> None:
    for i in range(part, 120, 4):
        once(library, seed + i)


def test_layouts_hold_their_rows_and_fit(seed: int) -> None:
    rng = random.Random(seed)
    found = 0
    for _ in range(3000):
        rows, k, size = (
            rng.choice((1, 6, 8, 16, 33, 4096)),
            rng.randint(1, 4096),
            rng.choice((2, 4)),
        )
        row_len = int(2 ** rng.uniform(0, 23))
        layout = cuda_resident.fit(rows, row_len, k, size)
        if layout is None:
            continue
        found += 1
        vectors = -(-(row_len + 16 // size - 1) * size // 16)
        assert -(-vectors // layout.cluster) <= (layout.elements * size // 16 + 8) // 8 * 8
        assert layout.shared_bytes(size) <= cuda_resident.LARGEST and k <= layout.topk
        assert layout.cluster == 1 or rows * layout.cluster <= 132
    assert found > 1000
