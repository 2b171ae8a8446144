"""Cases of dispatch: ranks, layouts, skew, empty ranks. Arguments are one tuple a rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import ROUTINGS

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "rows by source rank, then by token (deterministic mode)",
        "a token arrives once a rank, however many of its experts live there",
        "expanded rows are grouped by expert; gaps are zero",
    ),
    oracle="a walk over ranks, tokens and choices",
    source="DeepEP 2.5.0 and the references of DeepEP-Ascend",
)
RANKS = 4


def cases() -> Iterator[Case]:
    """Smallest first."""
    for expand in (False, True):
        yield _case((5, 0, 7, 1), expand=expand)
        yield _case((0, 0, 0, 0), expand=expand)
        yield _case((9, 4, 1, 6), expand=expand, alignment=16, near=2, masked=0.4)
    for kind in ROUTINGS:
        yield _case((33, 0, 17, 64), kind, expand=True, alignment=8, level="core")
    for topk in (1, 16):
        yield _case((20, 3, 0, 40), topk=topk, level="core")
    yield _case((257, 65, 7, 1), hidden=512, expand=True, alignment=128, level="core")


def _case(
    tokens: tuple[int, ...],
    kind: str = "uniform",
    *,
    hidden: int = 64,
    topk: int = 4,
    experts: int = 16,
    expand: bool = False,
    alignment: int = 1,
    near: int = 0,
    masked: float = 0.0,
    level: str = "smoke",
) -> Case:
    params = {
        "tokens": list(tokens), "hidden": hidden, "num_topk": topk, "num_experts": experts,
        "routing": kind, "do_expand": expand, "expert_alignment": alignment,
        "scaleup_ranks": near, "masked": masked,
    }  # fmt: skip
    shape = "-".join(map(str, tokens))
    name = f"{shape}x{hidden}k{topk}-{kind}-{'expanded' if expand else 'plain'}{near or ''}"
    return Case(name, params, level, ranks=RANKS)


def inputs(case: Case, seed: int) -> list[tuple[Any, ...]]:
    """(x, topk_idx, topk_weights, options) of every rank."""
    from ep_comm.contract import Spec, draw

    p = case.params
    spec = Spec(
        hidden=p["hidden"], num_topk=p["num_topk"], num_experts=p["num_experts"],
        routing=p["routing"], masked=p["masked"], counts=tuple(p["tokens"]), seed=seed,
    )  # fmt: skip
    options = {
        "num_experts": p["num_experts"], "num_max_tokens_per_rank": max(1, *p["tokens"]),
        "expert_alignment": p["expert_alignment"], "do_expand": p["do_expand"],
        "scaleup_ranks": p["scaleup_ranks"],
    }  # fmt: skip
    return [(s.x, s.topk_idx, s.topk_weights, options) for s in draw(spec, case.ranks)]
