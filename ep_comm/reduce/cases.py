"""Cases of reduce: all counts of choices and biases, wide exponents; then what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "float32 sum from +0.0: bias_0, bias_1, then choices in order; one rounding to bf16",
        "an entry of -1 is left out, whatever it would have added",
    ),
    oracle="float32 additions one by one, rounding by integer arithmetic",
    source="DeepEP-Ascend references (ordered_accumulate)",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 33):
        yield _case(tokens, 8, 256)
    for bias in (1, 2):
        yield _case(17, 6, 512, bias)
    yield _case(9, 1, 8)
    yield _case(9, 4, 128, 1, masked=1.0)
    for k in range(1, 33):
        yield _case(5, k, 64, k % 3, level="core")
    for hidden in (72, 2048, 3584, 4096, 7168):
        yield _case(7, 8, hidden, level="core")
    for tokens in (31, 32, 127, 128, 129, 1025):
        yield _case(tokens, 6, 128, level="core")
    for tokens in (128, 4096, 16384):
        yield _case(tokens, 6, 7168, level="full", bench=True)
    for wrong, error in _WRONG.items():
        params = {
            "num_rows": 8, "num_tokens": 4, "num_topk": 2, "hidden": 64, "num_bias": 0,
            "wrong": wrong,
        }  # fmt: skip
        yield Case(f"refused-{wrong}", params, error=error)


_WRONG = {
    "float32": "TypeError",
    "int64_table": "TypeError",
    "narrow": "ValueError",
    "bias_shape": "ValueError",
    "many": "ValueError",
}


def _case(
    tokens: int,
    topk: int,
    hidden: int,
    bias: int = 0,
    *,
    level: str = "smoke",
    bench: bool = False,
    masked: float = 0.3,
) -> Case:
    # In bench cases every row is used once, as it is when rows come back from ranks.
    rows = tokens * topk if bench else max(1, tokens)
    params = {
        "num_rows": rows, "num_tokens": tokens, "num_topk": topk, "hidden": hidden,
        "num_bias": bias, "masked": 0.0 if bench else masked, "once": bench,
    }  # fmt: skip
    return Case(f"{tokens}x{topk}x{hidden}b{bias}-{masked}", params, level, bench=bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(rows, table, biases); exponents so far apart that the order of a sum shows."""
    import torch

    from ascendkit.testing import generator, wide

    p, g = case.params, generator(seed)
    rows = wide((p["num_rows"], p["hidden"]), g, torch.bfloat16, -14, 14)
    shape = (p["num_tokens"], p["num_topk"])
    if p.get("once"):
        table = torch.randperm(shape[0] * shape[1], generator=g).view(shape)
    else:
        table = torch.randint(0, p["num_rows"], shape, generator=g)
    gone = torch.rand(shape, generator=g) < p.get("masked", 0.0)
    table = table.to(torch.int32).masked_fill_(gone, -1)
    bias = [
        wide((p["num_tokens"], p["hidden"]), g, torch.bfloat16, -14, 14)
        for _ in range(p["num_bias"])
    ]
    good = (rows, table, *bias, *[None] * (2 - len(bias)))
    return {
        "": good,
        "float32": (rows.float(), table),
        "int64_table": (rows, table.long()),
        "narrow": (rows[:, :7].contiguous(), table),
        "bias_shape": (rows, table, rows[:3].contiguous()),
        "many": (rows, table.repeat(1, 17)),
    }[p.get("wrong", "")]
