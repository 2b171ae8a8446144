"""Thousands of random calls of topk on a GPU, drawn and judged there by rules, not by another sort.

``python -m tests.topk.sweep_topk [--cases 3000] [--seconds 360] [--seed N]``. Cases are samples of
the grid below in which every pair of settings occurs. What is judged: every index once and in
range, no selected value below an unselected one, of equal values the smallest indices, values
bitwise those of the input, the order asked for, fills. The seed of a failing case is printed.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
from typing import Any

import torch

import topk
from tests.topk.gpu_warm import Shape, layout_of, warm
from tests.topk.pairwise import pairwise

MOST_ELEMENTS = 1 << 31
CHUNK = 1 << 27
"""Elements judged at a time."""
FILL = 2**31 - 1
AXES: dict[str, tuple[Any, ...]] = {
    "dtype": ("bfloat16", "bfloat16", "float16", "float32"),
    "index": (torch.int32, torch.int64),
    "order": ("none", "sorted", "sorted_index", "deterministic"),
    "values": (True, False),
    "rows": ((1, 20), (1, 20), (1, 100), (121, 121), (512, 512), (4096, 4096)),
    "row_len": (
        (1, 1), (1, 500), (1602, 1602), (4096, 4096), (500, 33000), (32768, 32768),
        (123245, 123245), (225467, 225467), (262144, 262144), (418673, 418673), (682965, 682965),
        (998123, 998123), (1048576, 1048576), ((1 << 23) - 1, (1 << 23) - 1),
    ),
    "topk": (1, (1, 500), 512, 1024, 1231, 2048, 2132, 2333, 4096),
    "scores": (
        "normal", "shifted", "scaled", "tiny", "bits", "one_value", "two_values", "nan", "all_nan",
        "minus_inf", "zeros", "rising", "falling",
    ),
    "ends": (False, True),
    "begins": (False, False, True),
    "offsets": (False, True),
    "gap": (0, 0, 8, 5),
}  # fmt: skip


def draw(kind: str, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    """Scores of a kind, by the default generator of the GPU."""
    x = torch.empty(shape, dtype=dtype, device="cuda")
    if kind == "bits":
        word = torch.int32 if dtype == torch.float32 else torch.int16
        info = torch.iinfo(word)
        return x.view(word).random_(info.min, info.max).view(dtype)
    if kind in ("rising", "falling"):
        ramp = torch.arange(shape[1], device="cuda", dtype=torch.float32)
        return x.copy_(ramp if kind == "rising" else -ramp)
    if kind in ("one_value", "all_nan"):
        return x.fill_(1.5 if kind == "one_value" else torch.nan)
    x.normal_()
    if kind == "shifted":
        x += 100
    elif kind in ("scaled", "tiny"):
        x *= 10000 if kind == "scaled" else 1e-4
    elif kind == "two_values":
        x.gt_(1)
    elif kind == "nan":
        x[x > 2] = torch.nan
    elif kind == "minus_inf":
        x[x < 2.5] = -torch.inf
    elif kind == "zeros":
        x *= 0
    return x


def keys(x: torch.Tensor) -> torch.Tensor:
    """Signed integers that order as the policy does."""
    word = torch.int32 if x.dtype == torch.float32 else torch.int16
    info = torch.iinfo(word)
    bits = x.view(word)
    key = bits ^ ((bits >> (info.bits - 1)) & info.max)
    key.masked_fill_(key == -1, 0)
    return key.masked_fill_(x.isnan(), info.max)


def broken(
    x: torch.Tensor, k: int, values: Any, indices: torch.Tensor, low: Any, high: Any, offset: Any,
    order: str,
) -> str:  # fmt: skip
    """The first rule that a chunk of rows breaks, or an empty string."""
    n = x.shape[1]
    low, high = low.clamp(0, n).long()[:, None], high.clamp(0, n).long()[:, None]
    want = (high - low).clamp(0, k)
    at = torch.arange(k, device="cuda")
    some = at < want
    if bool((indices.masked_fill(some, FILL) != FILL).any()):
        return "fill values"
    index = (indices.long() - offset.long()[:, None]).masked_fill(~some, 0)
    if bool((some & ((index < low) | (index >= high))).any()):
        return "an index out of range"
    chosen = torch.zeros(x.shape, dtype=torch.int8, device="cuda")
    chosen.scatter_add_(1, index, some.to(torch.int8))
    if bool((chosen > 1).any()):
        return "an index twice"
    taken = chosen > 0
    del chosen
    key = keys(x)
    top, bottom = torch.iinfo(key.dtype).max, torch.iinfo(key.dtype).min
    place = torch.arange(n, device="cuda", dtype=torch.int32)
    rest = ~taken & (place >= low) & (place < high)
    least = key.masked_fill(~taken, top).amin(1)
    most = key.masked_fill(~rest, bottom).amax(1)
    left = rest.any(1) & (want[:, 0] > 0)
    if bool((left & (least < most)).any()):
        return "a selected value below an unselected one"
    tied = key == least[:, None]
    last = place.masked_fill(~(tied & taken), -1).amax(1)
    first = place.expand(x.shape).masked_fill(~(tied & rest), FILL).amin(1)
    if bool((left & (last > first)).any()):
        return "of equal values not the smallest index"
    del tied, taken, rest
    mine = key.gather(1, index)
    if values is not None:
        bits = x.view(key.dtype).gather(1, index)
        if bool((some & (values.view(key.dtype) != bits)).any()):
            return "values are not those at the indices"
        if bool((~some & (values != -torch.inf)).any()):
            return "fill of values"
    both = some[:, 1:]
    later = index[:, 1:] > index[:, :-1]
    if order == "sorted":
        a, b = mine[:, :-1], mine[:, 1:]
        if bool((both & ~((a > b) | ((a == b) & later))).any()):
            return "not descending, equal values by index"
    elif order != "none" and bool((both & ~later).any()):
        return "indices not ascending"
    return ""


def settled(case: dict[str, Any], seed: int) -> dict[str, Any]:
    """Numbers for the ranges of a case; rows so that it stays below MOST_ELEMENTS."""
    rng = random.Random(seed)
    n = rng.randint(*case["row_len"])
    rows = min(rng.randint(*case["rows"]), max(MOST_ELEMENTS // (n + case["gap"]), 1))
    k = case["topk"] if isinstance(case["topk"], int) else rng.randint(*case["topk"])
    return {**case, "rows": rows, "row_len": n, "topk": k, "seed": seed}


def shape_of(case: dict[str, Any]) -> Shape:
    """What a kernel is chosen for."""
    return case["rows"], case["row_len"], case["topk"], case["dtype"]


def run(case: dict[str, Any]) -> str:
    """One call, judged."""
    torch.cuda.manual_seed(case["seed"])
    rng = random.Random(case["seed"])
    rows, n, k, gap = case["rows"], case["row_len"], case["topk"], case["gap"]
    x = draw(case["scores"], (rows, n + gap), getattr(torch, case["dtype"]))[:, gap // 2 :][:, :n]

    def ints(least: int, most: int) -> torch.Tensor:
        return torch.randint(least, most, (rows,), device="cuda", dtype=torch.int32)

    low, high = ints(0, 1), ints(n, n + 1)
    offset = ints(0, 1)
    kwargs: dict[str, Any] = {"indices_type": case["index"], "return_value": case["values"]}
    if case["ends"]:
        high = kwargs["end"] = ints(0 if rng.random() < 0.5 else max(n - 50, 0), n + 1)
    if case["begins"]:
        low = kwargs["begin"] = ints(0, n)
    if case["offsets"]:
        offset = kwargs["output_idx_offset"] = ints(0, 9999)
    if case["order"] != "none":
        kwargs[case["order"]] = True
    room = torch.full((rows, k + 6), -7, dtype=case["index"], device="cuda")
    values, indices = topk.topk(x, k, output_idx=room[:, 2 : k + 2], **kwargs)
    if bool((room[:, :2] != -7).any() or (room[:, k + 2 :] != -7).any()):
        return "written beside output_idx"
    step = max(CHUNK // n, 1)
    for r in range(0, rows, step):
        part = slice(r, r + step)
        message = broken(
            x[part].contiguous(), k, None if values is None else values[part], indices[part],
            low[part], high[part], offset[part], case["order"],
        )  # fmt: skip
        if message:
            return f"rows {r} on: {message}"
    return ""


def main() -> int:
    """Run until the cases or the time are used up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    options = parser.parse_args()
    start = time.monotonic()
    print("seed", options.seed, flush=True)
    rng = random.Random(options.seed)
    drawn: list[dict[str, Any]] = []
    while len(drawn) < options.cases:
        drawn += pairwise(AXES, rng)
    cases = [settled(case, options.seed + i) for i, case in enumerate(drawn[: options.cases])]
    count = warm(map(shape_of, cases))
    cases.sort(key=lambda c: str(layout_of(shape_of(c))))  # a kernel is loaded once
    print(f"{count} kernels compiled, {time.monotonic() - start:.0f} s", flush=True)
    done = failed = 0
    for case in cases:
        if time.monotonic() - start > options.seconds:
            break
        message = run(case)
        done += 1
        if message:
            failed += 1
            print("FAIL", message, case, flush=True)
            if failed == 20:
                break
    seconds = time.monotonic() - start
    print(f"{done} of {len(cases)} cases, {failed} failed, seed {options.seed}, {seconds:.0f} s")
    return 1 if failed or done < len(cases) else 0


if __name__ == "__main__":
    sys.exit(main())
