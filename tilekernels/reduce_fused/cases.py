"""Cases of reduce_fused: every form, exponents far apart, NaN and infinities; then refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from ascendkit.testing import sizes

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "float32 fused multiply-adds from +0.0, in the order of k; one rounding",
        "places below 0 or beyond x are left out, whatever they would have added",
        "e4m3 output is scaled by sf in float32 and saturates at 448; NaN stays NaN",
    ),
    oracle="exact fractions, rounded after every step",
    source="TileKernels before 2.1.0, reduce_fused",
)

FORMS = ("", "w", "s", "ws", "8", "8f", "w8f", "ws8f")
"""w: weights, s: x_sf, 8: e4m3 output, f: sf."""


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 5):
        yield _case(tokens, 4, 64)
    for form in FORMS:
        for dtype in ("bfloat16", "float32"):
            yield _case(5, 3, 24, form, dtype)
    yield _case(4, 3, 24, "ws", "float16")
    yield _case(6, 3, 16, "ws", special=True)
    for form, dtype in (("w", "float16"), ("w8f", "bfloat16")):
        yield _case(6, 3, 16, form, dtype, special=True)
    for form in ("", "8"):
        yield _case(3, 2, 70, form, "float16", level="core")
    yield _case(5, 4, 16, "w", masked=1.0)
    yield _case(5, 4, 16, "w", rows=0)
    for hidden in (1, 2, 7, 33, 65, 100, 257):
        yield _case(3, 2, hidden, "w", level="core")
    for topk in (1, 8, 9, 16, 17, 32):
        yield _case(4, topk, 8, "w", level="core")
    for tokens in sizes(32, 128, low=2, high=130):
        yield _case(tokens, 2, 8, "w", level="core")
    yield _case(2, 8, 4096, "w", level="core")
    yield _case(2, 3, 70001, "", level="full")
    for tokens in (128, 4096):
        yield _case(tokens, 8, 7168, "w", level="full", bench=True, masked=0.0)
    yield _case(8192, 6, 2560, "w", level="full", bench=True, masked=0.0)
    for wrong, error in _WRONG.items():
        yield Case(f"refused-{wrong}", _params(4, 2, 8, "w", "bfloat16") | {"wrong": wrong},
                   error=error)  # fmt: skip


_WRONG = {
    "int32": "TypeError",
    "flat": "ValueError",
    "strided": "ValueError",
    "places_int64": "TypeError",
    "weights_shape": "ValueError",
    "format": "ValueError",
    "sf_without_format": "ValueError",
    "scales_shape": "ValueError",
}


def _params(tokens: int, topk: int, hidden: int, form: str, dtype: str) -> dict[str, Any]:
    return {
        "num_tokens": tokens, "num_topk": topk, "hidden": hidden, "form": form, "dtype": dtype,
        "rows": tokens * topk + 3, "masked": 0.2, "special": False,
    }  # fmt: skip


def _case(
    tokens: int,
    topk: int,
    hidden: int,
    form: str = "",
    dtype: str = "bfloat16",
    *,
    level: str = "smoke",
    bench: bool = False,
    **others: Any,
) -> Case:
    tail = "".join(f"-{n}{v}" for n, v in others.items())
    name = f"{tokens}x{topk}x{hidden}-{form or 'plain'}-{dtype}{tail}{'-bench' if bench else ''}"
    params = _params(tokens, topk, hidden, form, dtype) | others
    return Case(name, params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(x, x_sf, topk_weights, token_topk_to_pos, fp8_format, sf)."""
    import torch

    from ascendkit.testing import generator, normal, wide

    p, g = case.params, generator(seed)
    dtype, form, rows = getattr(torch, p["dtype"]), p["form"], p["rows"]
    shape = (p["num_tokens"], p["num_topk"])
    x = wide((rows, p["hidden"]), g, dtype, -12, 12)
    if p["special"]:
        hit = torch.rand(x.shape, generator=g)
        x = x.masked_fill(hit < 0.1, torch.nan).masked_fill(hit > 0.9, torch.inf)
    places = torch.randperm(max(rows, shape[0] * shape[1]), generator=g)[: shape[0] * shape[1]]
    places = places.view(shape).to(torch.int32)
    places = places.masked_fill(torch.rand(shape, generator=g) < p["masked"], -1)
    x_sf = wide((rows,), g, None, -4, 4).abs() if "s" in form else None
    weights = normal(shape, g) if "w" in form else None
    sf = torch.tensor([0.37]) if "f" in form else None
    fp8 = "e4m3" if "8" in form else ""
    return {
        "": (x, x_sf, weights, places, fp8, sf),
        "int32": (x.int(), x_sf, weights, places, fp8, sf),
        "flat": (x.flatten(), x_sf, weights, places, fp8, sf),
        "strided": (x[:, ::2], x_sf, weights, places, fp8, sf),
        "places_int64": (x, x_sf, weights, places.long(), fp8, sf),
        "weights_shape": (x, x_sf, x.float(), places, fp8, sf),
        "format": (x, x_sf, weights, places, "e5m2", sf),
        "sf_without_format": (x, x_sf, weights, places, "", torch.ones(1)),
        "scales_shape": (x, torch.ones(2), weights, places, fp8, sf),
    }[p.get("wrong", "")]
