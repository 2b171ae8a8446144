"""Cases of topk: rows of the indexer and of sampling, sizes around blocks, ties."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Contract
from ascendkit.testing import SCORES, around

if TYPE_CHECKING:
    import torch

CONTRACT = Contract(
    compare="set_equal",
    deterministic=False,
    rules=(
        "NaN above +inf, all NaNs equal; -0.0 equals 0.0; -inf is a candidate like any other",
        "values keep the bits they have in the input",
        "equal values at the boundary: the smaller index is taken",
        "sorted: descending by value, equal values by index; sorted_index: ascending by index",
        "end <= begin: no candidate; fewer than topk candidates: all of them, then fill values",
        "deterministic=True: equal inputs give equal bits",
    ),
    oracle="lexsort of (NaN, value, index), row by row",
    source="arguments as DeepSelect's topk; rules on NaN, zeros and ties are this project's",
)

ORDERS = ("none", "sorted", "sorted_index")
BENCH_ROWS = (6, 256, 512, 768, 4096)
BENCH_LENGTHS = tuple(1 << n for n in (12, 14, 16, 17, 18, 19, 20))


def cases() -> Iterator[Case]:
    """Everything a caller may pass, smallest first; then what must be refused."""
    found: dict[str, Case] = {}
    for case in chain(_shapes(), _values(), _features(), _refused(), _bench()):
        found.setdefault(case.name, case)
    yield from found.values()


def _shapes() -> Iterator[Case]:
    for rows, row_len, topk in ((1, 1, 1), (3, 7, 7), (2, 5, 9), (0, 8, 4), (3, 0, 4)):
        yield _case(rows, row_len, topk)
    yield _case(4, 2000, 512)
    yield _case(2, 1602, 1024, order="sorted_index", wide=False)
    yield _case(2, 129280, 512, dtype="float32", order="sorted")
    for block in (256, 4096, 8192):
        for row_len in around(block):
            yield _case(2, row_len, 100, level="core")
            yield _case(2, row_len, 100, dtype="float32", level="core")
    for topk in (*around(512), *around(1024), 2048, 4095, 4096):
        yield _case(2, 9000, topk, "ties", order="sorted", level="core")
    for row_len in (32768, 123245, 262144):
        yield _case(3, row_len, 1024, dtype="float16", order="sorted_index", level="core")
    yield _case(1, (1 << 23) - 1, 1231, level="full")
    yield _case(121, 3333, 57, order="sorted", level="core")


def _values() -> Iterator[Case]:
    for kind in SCORES:
        for dtype in ("bfloat16", "float32"):
            level = "smoke" if kind in ("ties", "nan", "minus_inf", "signed_zeros") else "core"
            yield _case(3, 5000, 300, kind, dtype=dtype, order="sorted", level=level)
            yield _case(2, 40000, 700, kind, dtype=dtype, order="sorted_index", level="core")


def _features() -> Iterator[Case]:
    for dtype in ("bfloat16", "float16", "float32"):
        yield _case(9, 700, 64, "ties", dtype=dtype, ends=True, order="sorted_index")
        yield _case(9, 20000, 600, dtype=dtype, ends=True, begins=True, offset=True)
    yield _case(7, 1000, 33, strided=True, offset=True, wide=False)


def _refused() -> Iterator[Case]:
    for wrong, error in _WRONG.items():
        params = {"rows": 4, "row_len": 64, "num_topk": 8, "dtype": "bfloat16", "wrong": wrong}
        yield Case(f"refused-{wrong}", params, error=error)


def _bench() -> Iterator[Case]:
    for rows in BENCH_ROWS:
        for row_len in BENCH_LENGTHS:
            for topk in (512, 1024):
                yield _case(rows, row_len, topk, wide=False, values=False, level="full", bench=True)
        yield _case(rows, 129280, 512, dtype="float32", order="sorted", level="full", bench=True)


_WRONG = {
    "float64": "TypeError",
    "one_dimension": "ValueError",
    "transposed": "ValueError",
    "overlapping": "ValueError",
    "topk_0": "ValueError",
    "topk_4097": "ValueError",
    "topk_float": "TypeError",
    "topk_bool": "TypeError",
    "both_orders": "ValueError",
    "begin_int64": "TypeError",
    "end_short": "ValueError",
    "end_above": "ValueError",
    "begin_negative": "ValueError",
    "offset_overflow": "ValueError",
    "int16_indices": "TypeError",
    "hint": "ValueError",
    "fill_overflow": "ValueError",
    "fill_text": "TypeError",
    "list": "TypeError",
}


def _case(
    rows: int,
    row_len: int,
    topk: int,
    kind: str = "random",
    *,
    dtype: str = "bfloat16",
    order: str = "none",
    wide: bool = True,
    values: bool = True,
    level: str = "smoke",
    bench: bool = False,
    **features: Any,
) -> Case:
    params = {
        "rows": rows, "row_len": row_len, "num_topk": topk, "scores": kind, "dtype": dtype,
        "order": order, "wide": wide, "values": values, **features,
        "value_bytes": 4 if dtype == "float32" else 2, "index_bytes": 8 if wide else 4,
        "return_value": values, "sorted": order == "sorted",
    }  # fmt: skip
    marks = [kind, order, *(f for f in features if features[f])]
    marks = [m for m in marks if m not in ("random", "none")]
    name = "-".join((dtype, f"{rows}x{row_len}k{topk}", *marks))
    return Case(name if values else f"{name}-indices", params, level, 1, bench)


def inputs(case: Case, seed: int) -> tuple[Any, ...]:
    """Arguments of a case, in the order of the public function."""
    import torch

    from ascendkit.testing import generator, scores, sub_seed

    p = case.params
    rows, row_len, topk = p["rows"], p["row_len"], p["num_topk"]
    dtype = getattr(torch, p["dtype"])
    if "wrong" in p:
        return _wrong(p["wrong"], scores("random", (rows, row_len), seed, dtype), topk)
    g = generator(sub_seed(seed, "features"))
    input = scores(p["scores"], (rows, row_len), seed, dtype)
    if p.get("strided"):
        input = torch.nn.functional.pad(input, (5, 9), value=float("inf"))[:, 5:-9]
    end = begin = offset = None
    if p.get("ends"):
        end = torch.randint(-3, row_len + 1, (rows,), generator=g, dtype=torch.int32)
        end[: min(rows, 3)] = torch.tensor([0, min(topk, row_len), row_len])[:rows]
    if p.get("begins"):
        begin = torch.randint(0, row_len // 2, (rows,), generator=g, dtype=torch.int32)
    if p.get("offset"):
        offset = torch.randint(0, 10**6, (rows,), generator=g, dtype=torch.int32)
    order = p["order"]
    return (
        input, topk, order == "sorted", begin, end, torch.int64 if p["wide"] else torch.int32,
        order == "sorted_index", None, None, offset, 2**31 - 1, float("-inf"), p["values"],
    )  # fmt: skip


def page_table(rows: int, row_len: int, page_size: int, seed: int) -> torch.Tensor:
    """int32 (rows, pages) of distinct physical pages in random order."""
    import torch

    from ascendkit.testing import generator

    pages = -(-row_len // page_size)
    order = torch.randperm(max(rows * pages, 1), generator=generator(seed))[: rows * pages]
    return order.view(rows, pages).to(torch.int32)


def _wrong(wrong: str, input: torch.Tensor, topk: int) -> tuple[Any, ...]:
    import torch

    ints = torch.full((4,), 8, dtype=torch.int32)
    tail = (False, None, None, None, False, None, None, None)
    table: dict[str, tuple[Any, ...]] = {
        "float64": (input.double(), topk),
        "one_dimension": (input[0], topk),
        "transposed": (input.t(), topk),
        "overlapping": (input.as_strided((4, 64), (3, 1)), topk),
        "topk_0": (input, 0),
        "topk_4097": (input, 4097),
        "topk_float": (input, 8.0),
        "topk_bool": (input, True),
        "both_orders": (input, topk, True, None, None, None, True),
        "begin_int64": (input, topk, False, ints.long()),
        "end_short": (input, topk, False, None, ints[:3]),
        "end_above": (input, topk, False, None, ints + 57),
        "begin_negative": (input, topk, False, ints - 9),
        "offset_overflow": (input, topk, *tail[:3], torch.int32, *tail[4:7], ints + (2**31 - 70)),
        "int16_indices": (input, topk, *tail[:3], torch.int16),
        "hint": (input, topk, *tail[:5], 3),
        "fill_overflow": (input, topk, *tail[:3], torch.int32, *tail[4:], 2**31),
        "fill_text": (input, topk, *tail, -1, "x"),
        "list": (input.tolist(), topk),
    }
    return table[wrong]
