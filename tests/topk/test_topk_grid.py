"""A pairwise-covering sample of the correctness grid, judged by rules and not by another sort."""

from __future__ import annotations

import random

import pytest
import torch

import topk
from ascendkit.testing import generator, scores
from tests.topk.pairwise import pairwise

AXES = {
    "dtype": (torch.bfloat16, torch.float16, torch.float32),
    "index": (torch.int32, torch.int64),
    "order": ("none", "sorted", "sorted_index", "deterministic"),
    "values": (True, False),
    "rows": (1, 7, 20),
    "row_len": (1, 311, 1602, 8192, 32768),
    "topk": (1, 37, 512, 1024, 2132, 4096),
    "scores": ("random", "ties", "two_valued", "shared_prefix", "nan", "minus_inf", "bits"),
    "ends": (False, True),
    "begins": (False, True),
    "offsets": (False, True),
    "output": (False, True),
}


def broken(x, k, values, indices, low, high, offset, order) -> str:
    """The first rule that a result breaks, or an empty string."""
    fill = 2**31 - 1
    at = torch.arange(x.shape[1])
    for r in range(len(x)):
        mine = indices[r].long()
        want = min(k, max(0, int(high[r]) - int(low[r])))
        if not bool((mine[want:] == fill).all()):
            return f"row {r}: fill values"
        mine = mine[:want] - int(offset[r])
        if len(mine.unique()) != want:
            return f"row {r}: an index twice"
        if want and not (int(mine.min()) >= low[r] and int(mine.max()) < high[r]):
            return f"row {r}: an index out of range"
        key = x[r].double()
        key = key.masked_fill(key.isnan(), torch.inf) + x[r].isnan()
        nan = x[r].isnan()
        chosen = torch.zeros(x.shape[1], dtype=torch.bool)
        chosen[mine] = True
        others = (at >= low[r]) & (at < high[r]) & ~chosen
        if want and others.any():
            worst = torch.where(nan, torch.inf, key)[chosen].min()
            rest = torch.where(nan, torch.inf, key)[others].max()
            if worst < rest or (nan[others].any() and not nan[chosen].all()):
                return f"row {r}: a selected value below an unselected one"
            tied = key[chosen] == key[chosen].min()
            edge = at[chosen][tied & (nan[chosen] == nan[chosen].all())]
            equal = (
                others & (torch.where(nan, torch.inf, key) == worst) & (nan == nan[chosen].all())
            )
            if len(edge) and equal.any() and int(edge.max()) > int(at[equal].min()):
                return f"row {r}: of equal values not the smallest index"
        if order in ("sorted_index", "deterministic") and (mine.diff() <= 0).any():
            return f"row {r}: indices not ascending"
        if values is not None:
            if not torch.equal(_bits(values[r, :want]), _bits(x[r, mine])):
                return f"row {r}: values are not those at the indices"
            if not bool((values[r, want:] == -torch.inf).all()):
                return f"row {r}: fill of values"
        if order == "sorted" and want > 1:
            v = torch.where(x[r, mine].isnan(), torch.inf, x[r, mine].double())
            if (v.diff() > 0).any():
                return f"row {r}: values not descending"
    return ""


def _bits(t: torch.Tensor) -> torch.Tensor:
    return t.contiguous().view(torch.int32 if t.element_size() == 4 else torch.int16)


def _draw(kind: str, shape: tuple[int, int], seed: int, dtype: torch.dtype) -> torch.Tensor:
    if kind != "bits":
        return scores(kind, shape, seed, dtype)
    word = torch.int32 if dtype == torch.float32 else torch.int16
    info = torch.iinfo(word)
    draw = torch.randint(info.min, info.max + 1, shape, generator=generator(seed))
    return draw.to(word).view(dtype)


def run(case: dict, seed: int, platform: str) -> str:
    """Draw the inputs of a row of the sample, call topk, and judge."""
    g = generator(seed)
    rows, n, k = case["rows"], case["row_len"], case["topk"]
    x = _draw(case["scores"], (rows, n), seed, case["dtype"])
    low, high = torch.zeros(rows, dtype=torch.int32), torch.full((rows,), n, dtype=torch.int32)
    offset = torch.zeros(rows, dtype=torch.int32)
    kwargs: dict = {"indices_type": case["index"], "return_value": case["values"]}
    if case["ends"]:
        high = kwargs["end"] = torch.randint(-2, n + 1, (rows,), generator=g, dtype=torch.int32)
    if case["begins"]:
        low = kwargs["begin"] = torch.randint(0, n, (rows,), generator=g, dtype=torch.int32)
    if case["offsets"]:
        offset = kwargs["output_idx_offset"] = torch.randint(
            0, 9999, (rows,), generator=g, dtype=torch.int32
        )
    room = torch.full((rows, k + 6), -7, dtype=case["index"])
    if case["output"]:
        kwargs["output_idx"] = room[:, 2 : k + 2]
    if case["order"] != "none":
        kwargs[case["order"]] = True
    values, indices = topk.topk(x, k, platform=platform, **kwargs)
    if case["output"]:
        if indices.data_ptr() != room[:, 2:].data_ptr():
            return "output_idx is not what came back"
        if bool((room[:, :2] != -7).any() or (room[:, k + 2 :] != -7).any()):
            return "written beside output_idx"
    if (values is not None) != case["values"]:
        return "return_value"
    return broken(x, k, values, indices, low, high, offset, case["order"])


@pytest.mark.parametrize("part", range(4))
def test_every_pair_of_settings(seed: int, part: int) -> None:
    cases = pairwise(AXES, random.Random(seed))
    for i, case in enumerate(cases[part::4]):
        message = run(case, seed + i, "reference")
        assert not message, (message, case)


def test_the_judge_sees_what_is_wrong(seed: int) -> None:
    x = torch.randn(1, 100, generator=generator(seed))
    values, indices = topk.topk(x, 10, sorted=True)
    low, high = torch.zeros(1), torch.full((1,), 100)
    good = (x, 10, values, indices, low, high, torch.zeros(1), "sorted")
    assert not broken(*good)
    swapped = indices.clone()
    swapped[0, 0] = x[0].argmin()
    assert "below an unselected" in broken(*good[:2], None, swapped, *good[4:7], "none")
    twice = indices.clone()
    twice[0, 0] = twice[0, 1]
    assert "twice" in broken(*good[:3], twice, *good[4:])
    assert "descending" in broken(*good[:2], None, indices.flip(1), *good[4:])
    assert "not those" in broken(*good[:2], values.flip(1), indices, *good[4:7], "none")
