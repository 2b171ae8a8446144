"""Cases of top2_sum_gate: upstream's grid in small, odd groups, ties, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from tilekernels.gating import SCORING

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "groups by the sum of their two best ranks, equal ones by index; then as moe_topk_gate",
        "experts of other tensor-parallel ranks become -1, weights stay",
    ),
    oracle="rules from float64 mathematics",
    source="TileKernels before 2.0, extended to values it traps on",
)
ALL = ("mask", "fixed", "physical", "unmapped")


def cases() -> Iterator[Case]:
    """Smallest first; then what must be refused."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 256, 8, (8, 4))
    for scoring in SCORING:
        yield _case(19, 256, 8, (8, 4), ALL, scoring=scoring, shared=1)
        yield _case(9, 72, 6, (8, 8), ALL, scoring=scoring, shared=2, level="core")
        yield _case(9, 64, 6, (8, 2), ("unmapped",), "all_equal", scoring=scoring, level="core")
    for shape in ((72, 6, (12, 4)), (36, 6, (4, 2)), (108, 6, (9, 3)), (70, 5, (35, 35))):
        yield _case(17, *shape, ("unmapped", "mask"), level="core")
    for shape in ((32, 6, (0, 0)), (66, 4, (33, 33)), (512, 8, (32, 4)), (24, 20, (8, 2))):
        yield _case(7, *shape, ("unmapped",), level="core")
    for tokens in (1, 128, 4096, 16384):
        yield _case(tokens, 256, 8, (8, 4), level="full", bench=True)
    for wrong in ("groups_7", "keep_9", "tp_rank", "no_bias", "shared_alone"):
        params = {**_case(4, 64, 6, (8, 4)).params, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error="ValueError")


def _case(
    tokens: int,
    experts: int,
    topk: int,
    groups: tuple[int, int],
    options: tuple[str, ...] = (),
    kind: str = "random",
    *,
    scoring: str = "sigmoid",
    shared: int = 0,
    level: str = "smoke",
    bench: bool = False,
) -> Case:
    params: dict[str, Any] = {
        "num_tokens": tokens,
        "num_experts": experts,
        "num_topk": topk,
        "groups": groups,
        "options": options,
        "logits": kind,
        "scoring": scoring,
        "shared": shared,
        "copies": 5,
    }
    words = [
        f"{tokens}x{experts}k{topk}g{groups[0]}of{groups[1]}",
        scoring,
        kind,
        "+".join(options),
    ]
    return Case("-".join([*words, *(["bench"] if bench else [])]), params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """The arguments of ``SCHEMA``."""
    from tilekernels.gating.draws import logits, options

    p = dict(case.params)
    o = options({**p, "options": (*p["options"], "bias")}, seed)
    groups, keep = p["groups"]
    tp = 2 if "physical" in p["options"] else 1
    args = {
        "logits": logits(p, seed), "bias": o["bias"], "topk": p["num_topk"], "keep": keep,
        "groups": groups, "use_shared": bool(p["shared"]), "shared": p["shared"], "scale": 1.5,
        "ep_rank": 1, "ep": 4 if tp == 2 else 1, "tp_rank": tp - 1, "tp": tp,
        "scoring": p["scoring"], "mask": o["mask"], "fixed": o["fix_routing_mask"],
        "map": o["to_physical_map"], "count": o["logical_count"],
        "unmapped": o["unmapped_topk_idx"],
    }  # fmt: skip
    wrong: dict[str, dict[str, Any]] = {
        "": {},
        "groups_7": {"groups": 7},
        "keep_9": {"keep": 9},
        "tp_rank": {"tp_rank": 1},
        "no_bias": {"bias": None},
        "shared_alone": {"use_shared": True, "shared": 1},
    }
    return tuple({**args, **wrong[p.get("wrong", "")]}.values())
