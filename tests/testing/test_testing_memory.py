"""Guarded, poisoned and copied tensors."""

from __future__ import annotations

import pytest
import torch

from ascendkit.testing.memory import POISONS, Guarded, copied, tensors

LIKE = [
    torch.empty(3, 5),
    torch.empty(4, 6)[:, 1:4],
    torch.empty(3, 4).t(),
    torch.empty(0, 4),
    torch.empty(()),
    torch.empty(4, 6, dtype=torch.bool)[:, 1:4],
    torch.empty(4, 6, dtype=torch.bfloat16)[:, ::2],
    torch.empty(5, dtype=torch.float8_e4m3fn),
    torch.empty(5, dtype=torch.float4_e2m1fn_x2),
    torch.empty(5, dtype=torch.int64),
]


@pytest.mark.parametrize("like", LIKE, ids=lambda t: f"{t.dtype}{tuple(t.shape)}{t.stride()}")
def test_guarded_tensors_keep_layout_and_see_every_element(like):
    guard = Guarded(like)
    got = guard.tensor
    assert (got.dtype, got.shape, got.stride()) == (like.dtype, like.shape, like.stride())
    for pattern in POISONS:
        guard.poison(pattern)
        assert guard.unwritten(pattern).all() and not guard.breach()
    assert not guard.unwritten(POISONS[0]).any()


@pytest.mark.parametrize(
    ("offset", "told"),
    [(-1, "at byte -1 before"), (96, "at byte 0 behind"), (12, "gap of the output's strides")],
)
def test_a_byte_beside_the_output_is_reported(offset, told):
    guard = Guarded(torch.empty(4, 6)[:, :3])
    guard.poison(POISONS[0])
    size = guard.tensor.stride(0) * 4 * 4
    base = guard.tensor.storage_offset() * 4
    at = base + (offset if offset < size else size - 12 + offset - 96)
    guard._bytes[at] = 0
    assert told in guard.breach()


def test_partial_writes_are_located():
    guard = Guarded(torch.empty(2, 4))
    guard.poison(POISONS[1])
    guard.tensor[0].fill_(1.0)
    assert guard.unwritten(POISONS[1]).tolist() == [[False] * 4, [True] * 4]


def test_copies_share_nothing_and_keep_strides_and_gaps():
    base = torch.arange(24.0).reshape(4, 6)
    view = base[:, 1:4]
    first, (second, text) = copied((view, [base.expand(2, 4, 6), "x"]))
    assert first.stride() == view.stride() and torch.equal(first, view) and text == "x"
    assert second.stride() == (0, 6, 1)
    base.zero_()
    assert first.sum() > 0 and second.sum() > 0
    assert len(tensors((first, [second, 3], None))) == 2
    leaf = copied(torch.ones(2, requires_grad=True))
    assert leaf.requires_grad and copied(torch.ones(2, 2), "meta").device.type == "meta"
