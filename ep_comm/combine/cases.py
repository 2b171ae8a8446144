"""Cases of combine: those of dispatch, with rows of experts, biases, and sums on the way or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ascendkit.op import Case, Contract

CONTRACT = Contract(
    compare="bitwise",
    rules=(
        "float32 sums in choice order from +0.0, biases first, one rounding to bf16 a level",
        "levels: rank (expanded rows), node (hybrid mode), source; one without multiple reduction",
        "router weights are not applied",
    ),
    oracle="a walk over tokens, roundings by integer arithmetic",
    source="DeepEP 2.5.0 and the references of DeepEP-Ascend",
)


def cases() -> Iterator[Case]:
    """Smallest first."""
    from ep_comm.dispatch.cases import cases as dispatched

    for i, case in enumerate(dispatched()):
        # Weights cannot travel with expanded rows that are not summed on the way.
        options = {"num_bias": i % 3, "multiple_reduction": case.params["do_expand"] or i % 2 == 0}
        yield replace(case, params={**case.params, **options})


def inputs(case: Case, seed: int) -> list[tuple[Any, ...]]:
    """(y, topk_idx, topk_weights, biases, options) of every rank."""
    import torch

    from ascendkit.testing import generator, sub_seed, wide
    from ep_comm import reference as strict
    from ep_comm.dispatch.cases import inputs as dispatched
    from ep_comm.dispatch.reference import setting

    p = case.params
    per_rank = dispatched(case, seed)
    options = {**per_rank[0][3], "multiple_reduction": p["multiple_reduction"]}
    sent = [strict.Sent(x, idx, None, w) for x, idx, w, _ in per_rank]
    found = []
    for rank, (got, mine) in enumerate(zip(strict.dispatch(sent, setting(options)), sent)):
        g = generator(sub_seed(seed, "y", rank))
        y = wide(tuple(got.x.shape), g, torch.bfloat16, -14, 14)
        bias = tuple(
            wide(tuple(mine.x.shape), g, torch.bfloat16, -14, 14) for _ in range(p["num_bias"])
        )
        found.append((y, mine.topk_idx, mine.topk_weights, bias, options))
    return found
