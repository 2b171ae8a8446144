"""Random inputs and options for the CUDA kernels on this CPU."""

from __future__ import annotations

import random

import torch

from ascendkit.testing import generator, scores

Rows = torch.Tensor | None
"""int32, one value a row; pages: int32 (rows, pages)."""


def draw(rng: random.Random, kind: str, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Scores between canaries that would win if they were looked at."""
    rows, n = shape
    before, after = rng.choice(((0, 0), (0, 0), (5, 9), (1, 2), (8, 8)))
    room = torch.full((rows * (before + n + after) + 11,), torch.inf, dtype=dtype)
    skip = rng.choice((0, 0, 3))
    step = before + n + after
    x = room[skip : skip + rows * step].view(rows, step)[:, before : before + n]
    seed = rng.randrange(1 << 30)
    if kind == "bits":
        word = torch.int32 if dtype == torch.float32 else torch.int16
        info = torch.iinfo(word)
        bits = torch.randint(info.min, info.max + 1, shape, generator=generator(seed))
        x.copy_(bits.to(word).view(dtype))
    elif kind == "few":
        # -inf at the boundary: what fills vectors at the ends of a row must not be taken for it.
        x.copy_(
            scores("random", shape, seed, dtype).masked_fill_(
                torch.rand(shape, generator=generator(seed)) < 0.9, -torch.inf
            )
        )
    else:
        x.copy_(scores(kind, shape, seed, dtype))
    if rng.random() < 0.2:
        x.copy_(x.sort(dim=-1, descending=rng.random() < 0.5).values)
    return x


def options(
    rng: random.Random, g: torch.Generator, rows: int, n: int
) -> tuple[Rows, Rows, Rows, Rows, int]:
    """Begin, end, offset and page table, each there or not, and the page size."""
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
    return begin, end, offset, pages, size
