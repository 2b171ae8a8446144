"""The public function: what it refuses, where it writes, what it does with ranges and pages."""

from __future__ import annotations

import inspect

import pytest
import torch

import topk
from ascendkit.testing import generator
from tests.house.helpers import python
from topk.radix_select import cases, oracle


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, topk; topk.topk; print('torch' in sys.modules, 'tilelang' in sys.modules)"
    assert python("-c", code).stdout.split() == ["False", "False"]


def test_names_and_order_are_upstreams() -> None:
    names = list(inspect.signature(topk.topk).parameters)
    assert names[:13] == [
        "input", "topk", "sorted", "begin", "end", "indices_type", "sorted_index", "hint",
        "output_idx", "output_idx_offset", "idx_oob_fill_value", "value_oob_fill_value",
        "return_value",
    ]  # fmt: skip


@pytest.mark.parametrize("page_size", (1, 7, 64, 5000))
def test_page_table(seed: int, page_size: int) -> None:
    x = torch.randn(5, 900, generator=generator(seed)).bfloat16()
    end = torch.tensor([900, 0, 3, 450, 899], dtype=torch.int32)
    table = cases.page_table(5, 900, page_size, seed)
    offset = torch.arange(5, dtype=torch.int32)
    args = (x, 33, False, None, end, torch.int64, True, None, None, offset, -1)
    values, slots = topk.topk(*args, page_table=table, page_size=page_size)
    want_values, want = oracle.oracle(
        x.float().numpy(), *args[1:4], end.numpy(), None, True, None, None, offset.numpy(), -1,
        page_table=table.numpy(), page_size=page_size,
    )  # fmt: skip
    assert torch.equal(slots, torch.from_numpy(want))
    assert torch.equal(values.float(), torch.from_numpy(want_values))


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"tie_break": "smallest"}, "nearest: smallest_index"),
        ({"on_nan": "rais"}, "nearest: raise"),
        ({"page_size": 0}, "at least 1"),
        ({"page_table": torch.zeros(2, 1, dtype=torch.int32)}, r"pages \* page_size >= row_len"),
        ({"output_idx": torch.zeros(2, 5, dtype=torch.int32)}, "output_idx"),
        ({"output_idx": torch.zeros(8, 2, dtype=torch.int32).t()}, "contiguous last dimension"),
        ({"output_idx": torch.zeros(99).int().as_strided((2, 8), (4, 1))}, "rows 8 apart"),
    ],
)
def test_refuses(kwargs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topk.topk(torch.randn(2, 64), 8, **kwargs)


def test_traces_with_fake_tensors(seed: int) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def select(x: torch.Tensor) -> torch.Tensor:
        values, indices = topk.topk(x, 5, sorted=True, return_value=False)
        assert values is None
        return indices + 1

    x = torch.randn(3, 50, generator=generator(seed))
    graph = make_fx(select, tracing_mode="fake")(x)
    assert "ascendkit.topk_radix_select" in graph.code
    assert torch.equal(graph(x), select(x))


def test_requirements() -> None:
    assert topk.requirements().legal == 2
    assert topk.requirements(torch.float32).legal == 4
    assert topk.requirements().fast_input == 16


def test_takes_parameters_and_gives_no_gradient() -> None:
    weight = torch.nn.Parameter(torch.randn(2, 30))
    values, _ = topk.topk(weight, 4)
    assert not values.requires_grad
    assert torch.equal(values.sort().values, weight.detach().topk(4).values.sort().values)
