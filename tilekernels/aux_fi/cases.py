"""Cases of aux_fi: those of group_count, with 1 and k choices a token counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ascendkit.op import Case, Contract
from tilekernels.group_count import cases as counted

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "counts are integers; one float32 product and one quotient follow",
        "choices below 0 or from num_experts on do not count",
        "0 without tokens",
    ),
    oracle="a loop over choices",
    source="TileKernels before 2.1.0, aux_fi",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    for i, case in enumerate(counted.cases()):
        aux = 1 if i % 3 == 0 else case.params["num_topk"]
        yield replace(case, params=dict(case.params) | {"num_aux_topk": aux})
    bad = counted.case(4, 2, 8)
    yield replace(
        bad,
        name="refused-no_aux",
        error="ValueError",
        params=dict(bad.params) | {"num_aux_topk": 0},
    )


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """(topk_idx, num_experts, num_aux_topk)."""
    return *counted.inputs(case, seed), case.params["num_aux_topk"]
