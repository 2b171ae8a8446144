"""Cases of inplace_unique_group_indices: few and many groups, every width, odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import sizes

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "the first of equal indices in a row stays, the others become -1",
        "negative indices stay as they are",
    ),
    oracle="a walk along every row that remembers what it has seen",
    source="TileKernels before 2.1.0, inplace_unique_group_indices",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 8, 8)
    yield _case(17, 6, 1)
    yield _case(17, 6, 72, "any_integer")
    for topk in range(1, 33):
        yield _case(23, topk, 16, level="core")
    for tokens in sizes(32, 128, 512, low=2, high=520):
        yield _case(tokens, 6, 8, level="core")
    for groups in (16, 64, 72, 127, 128):
        yield _case(65, 9, groups, level="core")
    yield _case(100_003, 6, 8, level="full")
    for tokens in (1, 128, 4096, 16384):
        for topk in (6, 8):
            yield _case(tokens, topk, 8, level="full", bench=True)
    for wrong, error in _WRONG.items():
        yield Case(f"refused-{wrong}", _params(4, 4, 8) | {"wrong": wrong}, error=error)


_WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "columns_33": "ValueError",
    "no_groups": "ValueError",
    "float": "TypeError",
}


def _params(tokens: int, topk: int, groups: int, kind: str = "groups") -> dict[str, Any]:
    return {"num_tokens": tokens, "num_topk": topk, "num_groups": groups, "indices": kind}


def _case(
    tokens: int,
    topk: int,
    groups: int,
    kind: str = "groups",
    *,
    level: str = "smoke",
    bench: bool = False,
) -> Case:
    name = f"{tokens}x{topk}of{groups}-{kind}{'-bench' if bench else ''}"
    return Case(name, _params(tokens, topk, groups, kind), level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(group_indices, num_groups)."""
    import torch

    from ascendkit.testing import generator

    p, g = case.params, generator(seed)
    shape, groups = (p["num_tokens"], p["num_topk"]), p["num_groups"]
    idx = torch.randint(-2, groups, shape, generator=g)
    if p["indices"] == "any_integer":
        # Equal low words under different high words are different indices.
        idx += (1 << 32) * torch.randint(-1, 2, shape, generator=g)
    return {
        "": (idx, groups),
        "int32": (idx.int(), groups),
        "flat": (idx.flatten(), groups),
        "strided": (idx.T.contiguous().T, groups),
        "columns_33": (idx.repeat(1, 9)[:, :33].contiguous(), groups),
        "no_groups": (idx, 0),
        "float": (idx, 8.0),
    }[p.get("wrong", "")]
