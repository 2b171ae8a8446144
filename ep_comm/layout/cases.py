"""Cases of layout: real shapes, sizes around alignments, skew, no choices; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import ROUTINGS

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "tokens of a rank are numbered in the order of their index",
        "a token counts once a rank; its slot stands at its last choice there",
        "-1 is no choice",
    ),
    oracle="a walk over tokens that hands out the next free slot",
    source="DeepEP 2.5.0 dispatch layout and deduplication",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 8, 256, 8)
    yield _case(17, 1, 4, 4)
    yield _case(17, 32, 64, 2, masked=0.5)
    yield _case(9, 6, 6, 6, masked=1.0)
    for kind in ROUTINGS:
        yield _case(65, 6, 64, 16, kind, level="core")
    for tokens in (31, 32, 127, 128, 129, 1025):
        yield _case(tokens, 8, 256, 64, level="core", masked=0.2)
    for ranks in (1, 3, 7, 31, 128):
        yield _case(50, 5, ranks * 6, ranks, level="core")
    for tokens in (128, 4096, 16384):
        for ranks in (8, 64):
            yield _case(tokens, 8, 256, ranks, level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {"num_tokens": 4, "num_topk": 2, "num_experts": 8, "num_ranks": 4, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "undivided": "ValueError",
    "no_ranks": "ValueError",
    "bool_ranks": "TypeError",
}


def _case(
    tokens: int,
    topk: int,
    experts: int,
    ranks: int,
    kind: str = "uniform",
    *,
    level: str = "smoke",
    bench: bool = False,
    masked: float = 0.0,
) -> Case:
    params = {
        "num_tokens": tokens, "num_topk": topk, "num_experts": experts, "num_ranks": ranks,
        "routing": kind, "masked": masked,
    }  # fmt: skip
    name = f"{tokens}x{topk}of{experts}on{ranks}-{kind}{'-masked' if masked else ''}"
    return Case(name, params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(topk_idx, num_experts, num_ranks)."""
    import torch

    from ascendkit.testing import generator, routing

    p = case.params
    idx = routing(
        p.get("routing", "uniform"), p["num_tokens"], p["num_topk"], p["num_experts"], seed,
        num_ranks=p["num_ranks"],
    ).clone(memory_format=torch.contiguous_format)  # fmt: skip
    gone = torch.rand(idx.shape, generator=generator(seed + 1)) < p.get("masked", 0.0)
    idx = idx.masked_fill_(gone, -1)
    return {
        "": (idx, p["num_experts"], p["num_ranks"]),
        "int32": (idx.int(), 8, 4),
        "flat": (idx.flatten(), 8, 4),
        "strided": (idx.T.contiguous().T, 8, 4),
        "undivided": (idx, 9, 4),
        "no_ranks": (idx, 8, 0),
        "bool_ranks": (idx, 8, True),
    }[p.get("wrong", "")]
