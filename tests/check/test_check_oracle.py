"""How tensors reach a NumPy oracle and come back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ascendkit.check.oracle import to_numpy, to_torch
from ascendkit.testing import bitwise


def test_tensors_reach_the_oracle_exactly_and_are_its_own(seed):
    x = torch.randn(6, generator=torch.Generator().manual_seed(seed))
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu):
        got = to_numpy(x.abs().to(dtype))
        assert got.dtype == np.float32
        assert (got == x.abs().to(dtype).float().numpy()).all()
    kept = to_numpy((x, [torch.arange(3)], "text", None))
    assert kept[1][0].dtype == np.int64 and kept[2:] == ("text", None)
    kept[0][:] = 0
    assert x.abs().sum() > 0
    packed = torch.tensor([0x12], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    assert to_numpy(packed).tolist() == [0x12]


def test_answers_take_the_dtype_and_strides_of_the_result():
    like = torch.empty(3, 2, dtype=torch.bfloat16).t()
    got = to_torch(np.ones((2, 3)), like)
    assert got.dtype == torch.bfloat16 and got.stride() == like.stride()
    assert to_torch(np.float64(2.0), torch.empty((), dtype=torch.float32)).item() == 2.0
    assert to_torch(np.ones((4,)), like).shape == (4,)
    assert to_torch(np.zeros(2, bool), torch.empty(2, dtype=torch.bool)).dtype == torch.bool
    assert to_torch([np.ones(1), None], (torch.empty(1),))[1] is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e8m0fnu])
def test_an_oracle_may_answer_in_bits(dtype):
    like = torch.tensor([1.0, 2.0, 4.0]).to(dtype)
    bits = like.view({1: torch.uint8, 2: torch.int16}[like.element_size()]).numpy()
    assert bitwise(to_torch(bits.view(f"u{bits.dtype.itemsize}"), like), like)
    wrong = bits.astype("u4")
    with pytest.raises(TypeError, match="-bit values for"):
        to_torch(wrong, like)


def test_an_answer_of_the_wrong_kind_is_an_error():
    with pytest.raises(ValueError, match="wanted integers"):
        to_torch(np.ones(2), torch.empty(2, dtype=torch.int32))
    with pytest.raises(ValueError, match="cannot hold"):
        to_torch(np.array([300]), torch.empty(1, dtype=torch.uint8))
    assert to_torch(np.array([200]), torch.empty(1, dtype=torch.uint8)).item() == 200
