"""Cases of normalize_weight: every number of columns, sizes around tiles, weights of all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import sizes

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "sum over a binary tree, 16, 8, 4, 2, 1 columns apart, plus 1e-20",
        "one IEEE division a weight; a row of zeros gives zeros",
        "NaN and infinities follow IEEE arithmetic",
    ),
    oracle="float32 additions one by one",
    source="tile-kernels 2.1.0 normalize_weight",
)

KINDS = ("softmax", "wide", "zeros", "signed_zeros", "nan", "inf", "denormal", "cancel")


def cases() -> Iterator[Case]:
    """Smallest first; then what must be refused."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 8)
    for kind in KINDS[1:]:
        yield _case(19, 6, kind)
    for topk in range(1, 33):
        yield _case(21, topk, "wide", level="core")
    for tokens in sizes(32, 128, 512, low=2, high=520):
        yield _case(tokens, 6, "wide", level="core")
    yield _case(100_003, 9, "wide", level="full")
    for tokens in (1, 128, 4096, 16384):
        for topk in (6, 8):
            yield _case(tokens, topk, level="full", bench=True)
    for wrong, error in _WRONG.items():
        yield Case(
            f"refused-{wrong}", {"num_tokens": 4, "num_topk": 8, "wrong": wrong}, error=error
        )


_WRONG = {
    "float64": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "columns_33": "ValueError",
    "columns_0": "ValueError",
    "list": "TypeError",
}


def _case(
    tokens: int, topk: int, kind: str = "softmax", *, level: str = "smoke", bench: bool = False
) -> Case:
    params = {"num_tokens": tokens, "num_topk": topk, "weights": kind}
    tail = "-bench" if bench else ""
    return Case(f"{tokens}x{topk}-{kind}{tail}", params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(topk_weights,)."""
    import torch

    from ascendkit.testing import generator, normal, wide

    p, g = case.params, generator(seed)
    shape = (p["num_tokens"], p["num_topk"])
    kind = p.get("weights", "softmax")
    if kind == "softmax":
        weights = normal(shape, g).softmax(-1)
    elif kind in ("zeros", "signed_zeros"):
        weights = torch.zeros(shape) * (1 if kind == "zeros" else normal(shape, g).sign())
    elif kind == "denormal":
        weights = normal(shape, g).abs() * 2.0**-140
    elif kind == "cancel":
        weights = normal(shape, g)
        weights[:, -1] = -weights[:, :-1].sum(-1)
    else:
        weights = wide(shape, g)
        if kind in ("nan", "inf"):
            hit = torch.rand(shape, generator=g) < 0.2
            weights = weights.masked_fill(hit, float(kind))
    return {
        "": (weights,),
        "float64": (weights.double(),),
        "flat": (weights.flatten(),),
        "strided": (weights.T.contiguous().T,),
        "columns_33": (weights.repeat(1, 5)[:, :33].contiguous(),),
        "columns_0": (weights[:, :0].contiguous(),),
        "list": (weights.tolist(),),
    }[p.get("wrong", "")]
