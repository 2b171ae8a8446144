"""Cases of moe_topk_gate_backward: what the gate leaves, odd sizes; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from tilekernels.gating import SCORING

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "choices that are no expert have no gradient; experts chosen twice add up",
        "columns of shared experts are not looked at",
        "tokens outside the mask, or with scores of 0 only, have no auxiliary gradient",
    ),
    oracle="the formula in float64",
    source="tile-kernels 2.1.0 moe_topk_gate_backward, extended",
)


def cases() -> Iterator[Case]:
    """Smallest first; then what must be refused."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 256, 8)
    for scoring in SCORING:
        yield _case(18, 72, 6, scoring, sequences=3, shared=2)
        yield _case(22, 36, 6, scoring, "wide", sequences=2, shared=1, level="core")
        yield _case(9, 64, 6, scoring, "far", sequences=9, level="core")
        yield _case(6, 64, 6, scoring, "all_equal", sequences=1, level="core")
    for experts, topk in ((1, 1), (2, 1), (31, 5), (33, 4), (63, 6), (65, 6), (100, 32), (384, 6)):
        for sequences in (0, 1):
            yield _case(13, experts, topk, "softmax", sequences=sequences, level="core")
    for experts in (510, 513, 1024, 2048):
        yield _case(4, experts, 8, sequences=2, level="core")
    for tokens in (2, 7, 8, 9, 63, 64, 65, 129):
        yield _case(tokens, 256, 8, sequences=1, level="core")
    yield _case(100_003, 16, 2, sequences=1, level="full")
    for sequences in (0, 1):
        for tokens in (128, 4096, 16384):
            yield _case(tokens, 256, 8, sequences=sequences, level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {**_case(6, 64, 6, sequences=2).params, "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "float64": "TypeError",
    "scoring": "ValueError",
    "scale": "TypeError",
    "idx_int32": "TypeError",
    "idx_rows": "ValueError",
    "idx_columns": "ValueError",
    "weights_columns": "ValueError",
    "grad_strided": "ValueError",
    "mask_alone": "ValueError",
    "mask_dtype": "TypeError",
    "sequences": "ValueError",
    "sum_columns": "ValueError",
}


def _case(
    tokens: int,
    experts: int,
    topk: int,
    scoring: str = "sqrtsoftplus",
    kind: str = "random",
    *,
    sequences: int = 0,
    shared: int = 0,
    level: str = "smoke",
    bench: bool = False,
) -> Case:
    params = {
        "num_tokens": tokens, "num_experts": experts, "num_topk": topk, "scoring": scoring,
        "logits": kind, "num_sequences": sequences, "shared": shared,
    }  # fmt: skip
    tail = f"{f'-aux{sequences}' if sequences else ''}{f'-s{shared}' if shared else ''}"
    name = f"{tokens}x{experts}k{topk}-{scoring}-{kind}{tail}{'-bench' if bench else ''}"
    return Case(name, params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """The arguments of ``SCHEMA``: a gate's own scores, fixed experts among them."""
    import torch

    from ascendkit.testing import generator, normal
    from tilekernels.gating.draws import logits
    from tilekernels.gating.routing import route

    p, g = case.params, generator(seed + 2)
    tokens, topk, experts = p["num_tokens"], p["num_topk"], p["num_experts"]
    fixed = torch.randint(-1, experts + 1, (tokens, topk), generator=g)
    is_fixed, mask = (torch.rand(tokens, generator=g) < share for share in (0.3, 0.8))
    found = route(
        logits(p, seed), topk, p["shared"], 1.5, 0, p["scoring"],
        mask=mask, fix_routing_mask=is_fixed, unmapped_topk_idx=fixed,
    )  # fmt: skip
    grad = normal(tuple(found.weights.shape), g)
    # The auxiliary loss may have a mask of its own.
    h = normal((p["num_sequences"], experts), g) if p["num_sequences"] else None
    seen = torch.rand(tokens, generator=g) < 0.7 if h is not None else None
    args: dict[str, Any] = {
        "scores": found.scores, "idx": found.unmapped, "weights": found.weights, "grad": grad,
        "scale": 1.5, "scoring": p["scoring"], "mask": seen, "h": h,
    }  # fmt: skip
    return tuple(_wrong(args, p.get("wrong", "")).values())


def _wrong(args: dict[str, Any], what: str) -> dict[str, Any]:
    if not what:
        return args
    idx, weights, grad, h = (args[name] for name in ("idx", "weights", "grad", "h"))
    changed: dict[str, dict[str, Any]] = {
        "float64": {"scores": args["scores"].double()},
        "scoring": {"scoring": "identity"},
        "scale": {"scale": "1"},
        "idx_int32": {"idx": idx.int()},
        "idx_rows": {"idx": idx[1:]},
        "idx_columns": {"idx": idx.repeat(1, 6)},
        "weights_columns": {"weights": weights[:, 1:].contiguous()},
        "grad_strided": {"grad": grad.T.contiguous().T},
        "mask_alone": {"h": None},
        "mask_dtype": {"mask": args["mask"].int()},
        "sequences": {"h": h.repeat(2, 1)},
        "sum_columns": {"h": h[:, 1:].contiguous()},
    }
    return {**args, **changed[what]}
