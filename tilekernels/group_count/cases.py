"""Cases of group_count: sizes, skew, padding, indices out of range; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Contract
from ascendkit.testing import ROUTINGS, sizes

if TYPE_CHECKING:
    import torch

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "every occurrence counts, also of the same group in one row",
        "indices below 0 or from num_groups on do not count",
    ),
    oracle="a loop over indices",
    source="TileKernels before 2.1.0, group_count",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield case(tokens, 8, 256)
    yield case(19, 6, 72, masked=0.4)
    yield case(5, 3, 7, masked=1.0)
    yield case(40, 6, 72, "any_integer")
    for kind in ROUTINGS:
        yield case(129, 6, 72, kind, level="core", masked=0.1)
    for tokens in sizes(32, 512, low=2, high=520):
        yield case(tokens, 3, 31, level="core")
    for groups in (1, 2, 63, 64, 65, 1023, 1024, 1025, 8192):
        yield case(300, 1, groups, level="core")
    yield case(100_003, 8, 256, "zipf", level="full")
    for tokens in (128, 4096, 16384, 65536):
        yield case(tokens, 8, 256, level="full", bench=True)
    for wrong, error in WRONG.items():
        yield Case(
            f"refused-{wrong}", _params(4, 2, 8, "uniform", 0.0) | {"wrong": wrong}, error=error
        )


WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "no_columns": "ValueError",
    "no_groups": "ValueError",
    "bool_groups": "TypeError",
    "too_many": "ValueError",
}


def case(
    tokens: int,
    topk: int,
    groups: int,
    kind: str = "uniform",
    *,
    level: str = "smoke",
    bench: bool = False,
    masked: float = 0.0,
) -> Case:
    """One legal case."""
    tail = f"{'-masked' if masked else ''}{'-bench' if bench else ''}"
    name = f"{tokens}x{topk}of{groups}-{kind}{tail}"
    return Case(name, _params(tokens, topk, groups, kind, masked), level, bench=bench)


def _params(tokens: int, topk: int, groups: int, kind: str, masked: float) -> dict[str, Any]:
    return {
        "num_indices": tokens * topk, "num_tokens": tokens, "num_topk": topk,
        "num_groups": groups, "routing": kind, "masked": masked,
    }  # fmt: skip


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(group_idx, num_groups)."""
    idx, groups = draw(case, seed), case.params["num_groups"]
    return wrong_indices(case.params.get("wrong", ""), idx, groups)


def wrong_indices(wrong: str, idx: torch.Tensor, groups: int) -> tuple[Any, ...]:
    """(indices, number of groups), legal where ``wrong`` is empty."""
    return {
        "": (idx, groups),
        "int32": (idx.int(), groups),
        "flat": (idx.flatten(), groups),
        "strided": (idx.T.contiguous().T, groups),
        "no_columns": (idx[:, :0].contiguous(), groups),
        "no_groups": (idx, 0),
        "bool_groups": (idx, True),
        "too_many": (idx, 8193),
    }[wrong]


def draw(case: Case, seed: int) -> torch.Tensor:
    """Indices of a case, int64 (num_tokens, num_topk)."""
    import torch

    from ascendkit.testing import generator, routing

    p, g = case.params, generator(seed + 1)
    tokens, topk, groups = p["num_tokens"], p["num_topk"], p["num_groups"]
    if p["routing"] == "any_integer":
        wide = torch.randint(-(2**62), 2**62, (tokens, topk), generator=g)
        near = torch.randint(-3, groups + 3, (tokens, topk), generator=g)
        # A valid low word under a high word that is not zero must not count either.
        high = near + (1 << 32) * torch.randint(-2, 3, (tokens, topk), generator=g)
        pick = torch.randint(0, 3, (tokens, topk), generator=g)
        return torch.where(pick == 0, wide, torch.where(pick == 1, near, high))
    idx = routing(p["routing"], tokens, topk, groups, seed).clone(
        memory_format=torch.contiguous_format
    )
    gone = torch.rand(idx.shape, generator=g) < p["masked"]
    return idx.masked_fill_(gone, -1)
