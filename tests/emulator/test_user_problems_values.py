"""Values that broke selections for users; tests are named after the class of input."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("tilelang")

import ascendkit
from ascendkit.emulator.judged import judged
from topk.radix_select import ascend

pytestmark = pytest.mark.emu


def close(rows, n, g):
    """float32 that agree in all but the ten lowest bits."""
    bits = 0x3F900000 + torch.randint(0, 1024, (rows, n), generator=g, dtype=torch.int32)
    return bits.view(torch.float32)


CLASSES = {
    "shared prefix": close,
    "all equal": lambda rows, n, g: torch.full((rows, n), 0.5),
    "two values": lambda rows, n, g: torch.randint(0, 2, (rows, n), generator=g).float(),
    "zeros of a ReLU": lambda rows, n, g: torch.randn(rows, n, generator=g).relu(),
}


@pytest.mark.parametrize("k", [1, 512])
@pytest.mark.parametrize("name", CLASSES)
def test_radix_buckets_of_scores_that_are_close(name, k, seed):
    """tilelang 1351: buckets of a radix selection overflowed when scores agreed in the top bits."""
    rows, n = 2, 1500
    scores = CLASSES[name](rows, n, torch.Generator().manual_seed(seed))
    values, indices = torch.zeros(rows, k), torch.full((rows, k), -1, dtype=torch.int32)
    with ascendkit.use("emulator"), judged() as kept:
        ascend.run(
            scores, k, True, None, None, torch.int32, False, None, None, None, -1, 0.0, True,
            None, 1, out=(values, indices),
        )  # fmt: skip
    assert kept.launches and kept.findings == []
    assert torch.equal(values.sort(1).values, scores.sort(1).values[:, n - k :])
    assert torch.equal(scores.gather(1, indices.long()), values)
    assert all(len(set(row)) == k for row in indices.tolist())
