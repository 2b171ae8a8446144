"""The public function: what it refuses, where it writes, what it does with ranges and pages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import topk
from ascendkit.testing import generator
from tests.house.helpers import python
from topk.radix_select import cases, oracle

PLATFORMS = ("reference", pytest.param("emulator", marks=pytest.mark.emu))


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


def test_compiles_into_one_graph(seed: int) -> None:
    x = torch.randn(3, 50, generator=generator(seed))
    graph = torch.compile(
        lambda t: topk.topk(t, 5, sorted=True)[1], backend="eager", fullgraph=True
    )
    assert torch.equal(graph(x), topk.topk(x, 5, sorted=True)[1])


def test_requirements() -> None:
    assert topk.requirements().legal == 2
    assert topk.requirements(torch.float32).legal == 4
    assert topk.requirements().fast_input == 16


def test_takes_parameters_and_gives_no_gradient() -> None:
    weight = torch.nn.Parameter(torch.randn(2, 30))
    values, _ = topk.topk(weight, 4)
    assert not values.requires_grad
    assert torch.equal(values.sort().values, weight.detach().topk(4).values.sort().values)


def int32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "page, offset, at",
    [(-1, 0, 0), (2**31 - 1, 0, 0), (2**29 - 1, 100, 0), (2**29 - 1, 2, 2), (2**29, -4, None)],
)
def test_pages_whose_sums_leave_int32(
    platform: str, page: int, offset: int, at: int | None
) -> None:
    table = torch.zeros(2, 3, dtype=torch.int32)
    table[1, at or 0] = page
    kwargs = {"page_table": table, "page_size": 4, "indices_type": torch.int32}
    kwargs |= {"output_idx_offset": int32(0, offset), "platform": platform}
    x = torch.arange(20.0).view(2, 10).flip(1)
    if at is None:
        _, got = topk.topk(x, 1, **kwargs)
        assert got.tolist() == [[0], [2**31 - 4]]
    elif (page, offset, at) == (2**29 - 1, 2, 2):
        # Two candidates are on the last page: 2**31 - 4 + 1 + 2 fits, one more would not.
        topk.topk(x, 1, **kwargs)
        with pytest.raises(ValueError, match=r"page_table\[1, 2\].*nearest legal: 536870910"):
            topk.topk(x, 1, **kwargs | {"output_idx_offset": int32(0, 3)})
    else:
        with pytest.raises(ValueError, match=r"page_table\[1, 0\]"):
            topk.topk(x, 1, **kwargs)
        # A page without a candidate is not looked at.
        topk.topk(x, 1, begin=int32(0, 4), **kwargs)


@pytest.mark.parametrize(
    "dtype, fill",
    [(torch.bfloat16, 1e39), (torch.float16, -70000.0), (torch.float32, 10**400)],
)
def test_fill_values_are_of_the_dtype(dtype: torch.dtype, fill: float) -> None:
    x = torch.randn(1, 3).to(dtype)
    most = torch.finfo(dtype).max
    with pytest.raises(ValueError, match="nearest legal") as error:
        topk.topk(x, 4, value_oob_fill_value=fill)
    assert str(error.value).endswith(str(most if fill > 0 else -most))
    for legal in (most, -most, float("inf"), float("nan")):
        values, _ = topk.topk(x, 4, value_oob_fill_value=legal)
        assert torch.equal(values[0, 3], torch.tensor(legal, dtype=dtype)) or legal != legal


@pytest.mark.parametrize(
    "call",
    [
        lambda x: topk.requirements("float32"),
        lambda x: topk.requirements(torch.int8),
        lambda x: topk.topk(x, 3, sorted="no"),
        lambda x: topk.topk(x, 3, return_value=torch.tensor([1, 0])),
        lambda x: topk.topk(x, 3, sorted_index=1),
        lambda x: topk.topk(x, 3, deterministic=None),
        lambda x: topk.topk(x.to_sparse_csr(), 3),
        lambda x: topk.topk(torch.nested.nested_tensor([x[0], x[1, :4]]), 3),
        lambda x: topk.topk(x.to("meta"), 3),
    ],
)
def test_wrong_types(call: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(TypeError, match="wanted"):
        call(torch.randn(2, 10))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_output_apart_from_inputs(platform: str) -> None:
    x = torch.randn(2, 10)
    with pytest.raises(ValueError, match="output_idx: got 'memory of input'"):
        topk.topk(x, 10, output_idx=x.view(torch.int32), platform=platform)
    room = torch.zeros(6, dtype=torch.int32)
    with pytest.raises(ValueError, match="output_idx: got 'memory of output_idx_offset'"):
        topk.topk(x, 3, output_idx=room.view(2, 3), output_idx_offset=room[4:], platform=platform)
    # Side by side in the rows of one buffer is apart.
    both = torch.cat((x, torch.zeros(2, 3)), 1)
    out = both.view(torch.int32)[:, 10:]
    _, got = topk.topk(both[:, :10], 3, sorted=True, output_idx=out, platform=platform)
    assert torch.equal(got.long(), x.topk(3).indices)
    assert torch.equal(both[:, :10], x)
    with pytest.raises(ValueError, match="memory of input"):
        topk.topk(both[:, :11], 3, output_idx=out, platform=platform)
