"""Cases of mask_indices_by_tp: every rank of several layouts, odd sizes; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import sizes

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "indices that are negative or from 2**31 on give -1",
        "ranks that n leaves over (n not a multiple of num_ep_ranks) are numbered on",
    ),
    oracle="the list of experts a rank holds",
    source="TileKernels before 2.1.0, mask_indices_by_tp",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 6, 72, 8, 1, 2)
    for tp_rank in range(4):
        yield _case(17, 8, 64, 8, tp_rank, 4)
    yield _case(19, 5, 23, 4, 1, 2)
    yield _case(19, 5, 7, 7, 0, 1)
    wide = _params(40, 6, 64, 8, 1, 2) | {"wide": True}
    yield Case("40x6of64-any_integer", wide)
    for tokens in sizes(32, 128, 512, low=2, high=520):
        yield _case(tokens, 3, 96, 8, 3, 4, level="core")
    for tp in (2, 4, 8):
        for ranks in (8, 64):
            yield _case(63, 9, 256 * ranks, ranks, tp - 1, tp, level="core")
    yield _case(5, 4, 4, 4, 5, 8, level="core")
    yield _case(100_003, 7, 2048, 8, 1, 2, level="full")
    for tokens in (1, 128, 4096, 16384):
        yield _case(tokens, 8, 256 * 8, 8, 1, 2, level="full", bench=True)
    for wrong, error in _WRONG.items():
        yield Case(f"refused-{wrong}", _params(4, 2, 8, 4, 0, 2) | {"wrong": wrong}, error=error)


_WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "few_experts": "ValueError",
    "no_ranks": "ValueError",
    "rank": "ValueError",
    "negative_rank": "ValueError",
    "float": "TypeError",
    "large": "ValueError",
}


def _params(tokens: int, topk: int, n: int, ep: int, rank: int, tp: int) -> dict[str, Any]:
    return {
        "num_indices": tokens * topk, "num_tokens": tokens, "num_topk": topk, "n": n,
        "num_ep_ranks": ep, "tp_rank": rank, "num_tp_ranks": tp, "wide": False,
    }  # fmt: skip


def _case(
    tokens: int,
    topk: int,
    n: int,
    ep: int,
    rank: int,
    tp: int,
    *,
    level: str = "smoke",
    bench: bool = False,
) -> Case:
    name = f"{tokens}x{topk}of{n}-ep{ep}-tp{rank}of{tp}{'-bench' if bench else ''}"
    return Case(name, _params(tokens, topk, n, ep, rank, tp), level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(indices, n, num_ep_ranks, tp_rank, num_tp_ranks)."""
    import torch

    from ascendkit.testing import generator

    p, g = case.params, generator(seed)
    shape = (p["num_tokens"], p["num_topk"])
    idx = torch.randint(-2, p["n"], shape, generator=g)
    if p["wide"]:
        idx = idx.clamp(min=0) + (1 << 31) * torch.randint(-3, 4, shape, generator=g)
    n, ep, rank, tp = p["n"], p["num_ep_ranks"], p["tp_rank"], p["num_tp_ranks"]
    return {
        "": (idx, n, ep, rank, tp),
        "int32": (idx.int(), n, ep, rank, tp),
        "flat": (idx.flatten(), n, ep, rank, tp),
        "strided": (idx.T.contiguous().T, n, ep, rank, tp),
        "few_experts": (idx, ep - 1, ep, rank, tp),
        "no_ranks": (idx, n, 0, rank, tp),
        "rank": (idx, n, ep, tp, tp),
        "negative_rank": (idx, n, ep, -1, tp),
        "float": (idx, 8.0, ep, rank, tp),
        "large": (idx, 1 << 30, 1, rank, 2),
    }[p.get("wrong", "")]
