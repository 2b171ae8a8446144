"""Cases of expand_to_fused_with_sf: both layouts of scales, both of their types; then refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ascendkit.op import Case, Contract
from tilekernels.expand_to_fused import cases as plain

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        *plain.CONTRACT.rules,
        "column-major scales are padded to 4 positions; the padding is not written",
    ),
    oracle="one place at a time",
    source="TileKernels before 2.1.0, expand_to_fused_with_sf",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for tokens in (0, 1, 17):
        for packed, col in ((False, False), (False, True), (True, True)):
            yield _case(tokens, 3, 8, 200, packed, col)
    yield _case(0, 2, 8, 64, False, True, spare=5)
    for hidden in (33, 128, 2560, 7168):
        yield _case(5, 2, 4, hidden, False, True, level="core")
    for align in (1, 64):
        for tokens in (128, 4096):
            yield _case(
                tokens, 8, 256, 7168, False, False, level="full", bench=True, alignment=align
            )
        yield _case(8192, 6, 72, 2560, True, True, level="full", bench=True, alignment=align)
    for wrong in ("channels", "columns", "row_major", "no_expert"):
        params = plain.params(4, 2, 8, 64, "float8_e4m3fn") | {"packed": True, "col": True}
        yield Case(f"refused-{wrong}", params | {"wrong": wrong}, error="ValueError")


def _case(
    tokens: int, topk: int, experts: int, hidden: int, packed: bool, col: bool, **others: Any
) -> Case:
    # opcheck, which takes a small case, cannot handle narrow floats.
    dtype = "float8_e4m3fn" if tokens > 5 else "uint8"
    case = plain.case(tokens, topk, experts, hidden, dtype, **others)
    words = -(-hidden // (128 * (4 if packed else 1)))
    more = {"packed": packed, "col": col, "scale_bytes": 4 * words}
    name = f"{case.name}{'-int32' if packed else ''}{'-col' if col else ''}"
    return Case(name, dict(case.params) | more, case.level, bench=case.bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(x, x_sf, num_per_channels, token_topk_to_pos, pos_to_expert, col_major)."""
    import torch

    from ascendkit.testing import generator

    p = dict(case.params)
    x, places, experts = plain.inputs(
        Case("rows", {k: v for k, v in p.items() if k != "wrong"}), seed
    )
    words = -(-p["hidden"] // (128 * (4 if p["packed"] else 1)))
    g = generator(seed + 7)
    if p["packed"]:
        sf = torch.randint(-(2**31), 2**31 - 1, (len(x), words), generator=g).int()
    else:
        sf = torch.randn(len(x), words, generator=g)
    return {
        "": (x, sf, 128, places, experts, p["col"]),
        "channels": (x, sf, 64, places, experts, p["col"]),
        "columns": (x, sf.repeat(1, 2), 128, places, experts, p["col"]),
        "no_expert": (x, sf, 128, places, experts.new_full(experts.shape, -1), p["col"]),
        "row_major": (x, sf, 128, places, experts, False),
    }[p.get("wrong", "")]
