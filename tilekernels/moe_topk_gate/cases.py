"""Cases of moe_topk_gate: shapes of models, every option alone and together, odd logits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import SCORES
from tilekernels.gating import SCORING

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "descending score plus bias; equal ones by index, the smaller first",
        "weights: scores without bias over their sum, added in a tree, plus 1e-20",
        "a NaN logit counts as -inf, infinities as the largest floats; nothing traps",
        "fixed experts may repeat; what is no expert counts as -1 with weight 0",
        "physical indices by 64-bit arithmetic, for any number of tokens",
    ),
    oracle="rules from float64 mathematics",
    source="tile-kernels 2.1.0 moe_topk_gate_forward, extended",
)

ALL = ("mask", "bias", "image", "fixed", "physical", "random", "scores")
SHAPES = ((72, 6), (32, 6), (256, 8), (384, 6), (288, 7), (256, 9))


def cases() -> Iterator[Case]:
    """Smallest first; then what must be refused."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 256, 8, ("bias",))
    yield _case(29, 72, 6, ALL, shared=2)
    for option in (*ALL, "unmapped"):
        yield _case(18, 72, 6, (option,), level="core")
    for scoring in SCORING:
        yield _case(21, 256, 8, ("bias", "scores"), scoring=scoring)
        yield _case(21, 36, 6, ALL, scoring=scoring, shared=1, level="core")
        for kind in ("wide", "far", "all_equal", "ties", "inf", "minus_inf", "all_minus_inf"):
            options = ("scores", "unmapped")
            yield _case(9, 64, 6, options, kind, scoring=scoring, level="core")
        for kind in (k for k in SCORES if "nan" in k):
            yield _case(9, 64, 6, ("bias",), kind, scoring=scoring, level="core", loose=True)
    for experts, topk in (*SHAPES, (1, 1), (2, 1), (31, 5), (33, 4), (63, 6), (65, 6), (100, 32)):
        yield _case(13, experts, topk, ("bias", "unmapped"), level="core")
    for experts in (513, 1024, 2048):
        yield _case(3, experts, 8, ("bias", "scores", "physical"), level="core")
    for tokens in (2, 7, 8, 9, 63, 64, 65, 129):
        yield _case(tokens, 256, 8, ("bias",), level="core")
    yield _case(11, 64, 30, ("mask", "physical", "random", "bias"), shared=2, level="core")
    yield _case(8001, 256, 8, ALL, shared=1, level="full")
    # Token 92,037 is the first whose product with 23,333 does not fit 31 bits.
    yield _case(100_003, 16, 2, ("physical",), level="full")
    for experts, topk in ((256, 8), (384, 6)):
        for tokens in (1, 128, 4096, 16384):
            yield _case(tokens, experts, topk, ("bias",), level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {**_case(5, 64, 6, ALL).params, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "float64": "TypeError",
    "scoring": "ValueError",
    "topk_0": "ValueError",
    "topk_65": "ValueError",
    "shared_3": "ValueError",
    "rank": "ValueError",
    "scale": "TypeError",
    "mask_dtype": "TypeError",
    "mask_length": "ValueError",
    "bias_length": "ValueError",
    "image_alone": "ValueError",
    "map_alone": "ValueError",
    "map_rows": "ValueError",
    "fixed_alone": "ValueError",
    "unmapped_int32": "TypeError",
    "scores_shape": "ValueError",
    "nan": "ValueError",
    "fixed_range": "ValueError",
    "count_range": "ValueError",
}


def _case(
    tokens: int,
    experts: int,
    topk: int,
    options: tuple[str, ...],
    kind: str = "random",
    *,
    scoring: str = "sqrtsoftplus",
    shared: int = 0,
    level: str = "smoke",
    bench: bool = False,
    loose: bool = False,
) -> Case:
    params: dict[str, Any] = {
        "num_tokens": tokens,
        "num_experts": experts,
        "num_topk": topk,
        "options": options,
        "logits": kind,
        "scoring": scoring,
        "shared": shared,
        "copies": 3 if "physical" in options else 1,
    }
    if loose:
        params["check_values"] = False
    words = [f"{tokens}x{experts}k{topk}", scoring, kind, "+".join(options), f"s{shared}"]
    return Case("-".join([*words, *(["bench"] if bench else [])]), params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """The arguments of ``SCHEMA``."""
    from tilekernels.gating.draws import logits, options

    p = dict(case.params)
    o = options(p, seed)
    args = {
        "logits": logits(p, seed),
        "num_topk": p["num_topk"],
        "use_shared": bool(p["shared"]),
        "shared": p["shared"],
        "scale": 1.5,
        "ep_rank": 5,
        "scoring": p["scoring"],
        **{n: o[n] for n in _OPTIONAL},
    }
    return tuple(_wrong(args, p.get("wrong", "")).values())


_OPTIONAL = (
    "mask", "bias", "image_bias", "image_token_mask", "fix_routing_mask", "to_physical_map",
    "logical_count", "unmapped_topk_idx", "force_random", "scores",
)  # fmt: skip


def _wrong(args: dict[str, Any], what: str) -> dict[str, Any]:
    if not what:
        return args
    if what == "nan":
        args["logits"][1, 2] = float("nan")
        return args
    if what == "fixed_range":
        args["fix_routing_mask"].fill_(True)
        args["unmapped_topk_idx"][0, 0] = 64
        return args
    if what == "count_range":
        args["logical_count"][3] = 0
        return args
    changed: dict[str, dict[str, Any]] = {
        "float64": {"logits": args["logits"].double()},
        "scoring": {"scoring": "identity"},
        "topk_0": {"num_topk": 0},
        "topk_65": {"num_topk": 65},
        "shared_3": {"use_shared": True, "shared": 3},
        "rank": {"ep_rank": -1},
        "scale": {"scale": "1"},
        "mask_dtype": {"mask": args["mask"].int()},
        "mask_length": {"mask": args["mask"][1:]},
        "bias_length": {"bias": args["bias"][1:].contiguous()},
        "image_alone": {"image_bias": None},
        "map_alone": {"logical_count": None},
        "map_rows": {"to_physical_map": args["to_physical_map"][1:].contiguous()},
        "fixed_alone": {"unmapped_topk_idx": None},
        "unmapped_int32": {"unmapped_topk_idx": args["unmapped_topk_idx"].int()},
        "scores_shape": {"scores": args["scores"][:, 1:].contiguous()},
    }
    return {**args, **changed[what]}
