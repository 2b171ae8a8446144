"""Cases of topk_sum_and_topk_group_idx: upstream's grid, odd groups, scores that break ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import SCORES

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "descending sum; equal sums by group, the smaller first",
        "a NaN score, and a sum that is NaN, count as -inf",
    ),
    oracle="sorted Python numbers",
    source="TileKernels before 2.0, extended to non-finite scores",
)


def cases() -> Iterator[Case]:
    """Smallest first; then what must be refused."""
    for tokens in (0, 1, 37):
        yield _case(tokens, 8, 32, 2, 4)
    for kind in SCORES:
        yield _case(21, 8, 9, 2, 4, kind, level="smoke" if kind == "all_equal" else "core")
    for experts in (72, 256):
        for groups in (4, 8, 12, 16):
            if experts % groups == 0:
                for top, keep in ((1, 2), (2, 4)):
                    yield _case(33, groups, experts // groups, top, keep, level="core")
    for groups, per_group in ((1, 1), (1, 70), (3, 7), (5, 2), (31, 3), (32, 33), (32, 64)):
        yield _case(9, groups, per_group, min(2, per_group), groups, "ties", level="core")
    yield _case(70_001, 4, 4, 2, 2, level="full")
    for tokens in (1, 128, 4096, 16384):
        yield _case(tokens, 8, 32, 2, 4, level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {**_params(4, 8, 8, 2, 4), "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "float64": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "groups_33": "ValueError",
    "sum_3": "ValueError",
    "keep_9": "ValueError",
    "keep_0": "ValueError",
    "list": "TypeError",
}


def _params(tokens: int, groups: int, per_group: int, top: int, keep: int) -> dict[str, Any]:
    return {
        "num_tokens": tokens,
        "num_groups": groups,
        "per_group": per_group,
        "num_topk_sum": top,
        "num_topk_groups": keep,
    }


def _case(
    tokens: int,
    groups: int,
    per_group: int,
    top: int,
    keep: int,
    kind: str = "random",
    *,
    level: str = "smoke",
    bench: bool = False,
) -> Case:
    params = {**_params(tokens, groups, per_group, top, keep), "scores": kind}
    tail = f"{kind}{'-bench' if bench else ''}"
    return Case(f"{tokens}x{groups}x{per_group}-{top}-{keep}-{tail}", params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(scores, num_topk_sum, num_topk_groups)."""
    from ascendkit.testing import scores

    p = case.params
    shape = (p["num_tokens"], p["num_groups"], p["per_group"])
    x, top, keep = (
        scores(p.get("scores", "random"), shape, seed),
        p["num_topk_sum"],
        p["num_topk_groups"],
    )
    return {
        "": (x, top, keep),
        "float64": (x.double(), top, keep),
        "flat": (x.flatten(1), top, keep),
        "strided": (x.transpose(1, 2).contiguous().transpose(1, 2), top, keep),
        "groups_33": (x.repeat(1, 5, 1)[:, :33].contiguous(), top, keep),
        "sum_3": (x, 3, keep),
        "keep_9": (x, top, 9),
        "keep_0": (x, top, 0),
        "list": (x.tolist(), top, keep),
    }[p.get("wrong", "")]
