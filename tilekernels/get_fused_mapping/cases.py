"""Cases of get_fused_mapping: routings, alignments, buffers too small and too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import ROUTINGS, sizes

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "entries of an expert stand in the order of (token, k)",
        "start, end and sizes are aligned; padding and the rest of the buffer hold -1",
        "entries beyond the buffer are dropped, their place is -1",
        "choices below 0 or from num_experts on are none; repeats are entries of their own",
    ),
    oracle="lists of entries an expert",
    source="TileKernels before 2.1.0, get_fused_mapping",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 8, 64, 64)
    yield _case(0, 2, 5, 3, spare=7)
    yield _case(19, 6, 72, 1, masked=0.4)
    yield _case(19, 6, 72, 7, spare=33)
    yield _case(40, 4, 8, 16, spare=-70)
    yield _case(9, 3, 4, 8, spare=-(10**6))
    yield _case(50, 5, 6, 8, "repeats")
    yield _case(12, 4, 6, 8, masked=1.0, spare=9)
    for kind in ROUTINGS:
        yield _case(129, 6, 72, 32, kind, level="core", masked=0.1)
    for tokens in sizes(32, 128, 512, low=2, high=520):
        yield _case(tokens, 3, 31, 128, level="core")
    for experts in (1, 2, 63, 64, 65, 255, 257, 1023, 1024):
        yield _case(301, 1, experts, 4, level="core")
    for topk in (9, 16, 31, 32):
        yield _case(65, topk, 48, 64, level="core")
    yield _case(2100, 8, 256, 64, "zipf", level="core")
    yield _case(100_003, 8, 256, 128, "zipf", level="full")
    for tokens in (1, 128, 4096, 16384):
        yield _case(tokens, 8, 256, 64, level="full", bench=True)
    yield _case(8192, 6, 72, 64, level="full", bench=True)
    for wrong, error in _WRONG.items():
        yield Case(f"refused-{wrong}", _params(4, 2, 8, 4, "uniform", 0.0, 0) | {"wrong": wrong},
                   error=error)  # fmt: skip


_WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "columns_33": "ValueError",
    "no_experts": "ValueError",
    "experts_1025": "ValueError",
    "alignment_0": "ValueError",
    "negative": "ValueError",
    "bool": "TypeError",
    "too_large": "ValueError",
}


def _params(
    tokens: int, topk: int, experts: int, alignment: int, kind: str, masked: float, spare: int
) -> dict[str, Any]:
    most = (tokens * topk + (alignment - 1) * experts) // alignment * alignment
    return {
        "num_tokens": tokens, "num_topk": topk, "num_experts": experts, "alignment": alignment,
        "num_expanded_tokens": max(most + spare, 0), "routing": kind, "masked": masked,
    }  # fmt: skip


def _case(
    tokens: int,
    topk: int,
    experts: int,
    alignment: int,
    kind: str = "uniform",
    *,
    level: str = "smoke",
    bench: bool = False,
    masked: float = 0.0,
    spare: int = 0,
) -> Case:
    tail = f"{f'-spare{spare}' if spare else ''}{'-masked' if masked else ''}"
    name = f"{tokens}x{topk}of{experts}a{alignment}-{kind}{tail}{'-bench' if bench else ''}"
    params = _params(tokens, topk, experts, alignment, kind, masked, spare)
    return Case(name, params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(topk_idx, num_experts, num_expanded_tokens, alignment)."""
    import torch

    from ascendkit.testing import generator, routing

    p, g = case.params, generator(seed + 1)
    tokens, topk, experts = p["num_tokens"], p["num_topk"], p["num_experts"]
    if p["routing"] == "repeats":
        idx = torch.randint(-2, experts + 3, (tokens, topk), generator=g)
    else:
        idx = routing(p["routing"], tokens, topk, experts, seed)
        idx = idx.clone(memory_format=torch.contiguous_format)
    idx = idx.masked_fill(torch.rand(idx.shape, generator=g) < p["masked"], -1)
    size, align = p["num_expanded_tokens"], p["alignment"]
    return {
        "": (idx, experts, size, align),
        "int32": (idx.int(), experts, size, align),
        "flat": (idx.flatten(), experts, size, align),
        "strided": (idx.T.contiguous().T, experts, size, align),
        "columns_33": (idx.repeat(1, 33)[:, :33].contiguous(), experts, size, align),
        "no_experts": (idx, 0, size, align),
        "experts_1025": (idx, 1025, size, align),
        "alignment_0": (idx, experts, size, 0),
        "negative": (idx, experts, -1, align),
        "bool": (idx, experts, size, True),
        "too_large": (idx, experts, size, 1 << 30),
    }[p.get("wrong", "")]
