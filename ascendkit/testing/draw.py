"""Seeds and plain random tensors: everything random comes from one integer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ascendkit.errors import unknown

if TYPE_CHECKING:
    import torch

PLACES = ("front", "middle", "end", "scattered", "everywhere")
"""Where along the last dimension something unusual sits."""


def sub_seed(seed: int, *names: object) -> int:
    """A seed of its own for every name (op, case, argument), equal on every machine."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int) -> torch.Generator:
    """A CPU generator; the only source of randomness of this package."""
    import torch

    return torch.Generator().manual_seed(seed)


def normal(
    shape: Sequence[int], g: torch.Generator, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Standard normal values, drawn in float32 and rounded to ``dtype`` (default float32)."""
    import torch

    return torch.randn(tuple(shape), generator=g).to(dtype or torch.float32)


def wide(
    shape: Sequence[int],
    g: torch.Generator,
    dtype: torch.dtype | None = None,
    low: int = -110,
    high: int = 126,
) -> torch.Tensor:
    """Normal values times 2**U(low, high): all magnitudes, kept finite in ``dtype``."""
    import torch

    dtype = dtype or torch.float32
    power = torch.randint(low, high + 1, tuple(shape), generator=g).double()
    values = torch.randn(tuple(shape), generator=g, dtype=torch.float64) * torch.exp2(power)
    top = torch.finfo(dtype).max
    return values.clamp(-top, top).to(dtype)


def place(shape: Sequence[int], where: str, g: torch.Generator, share: float = 0.1) -> torch.Tensor:
    """Boolean mask of ``shape``: which elements of every row are at that place.

    Args:
        where: one of :data:`PLACES`. front and end mark a run of ``share`` of the row, at least one
            element; middle the same run at the centre; scattered marks elements at random.
    """
    import torch

    if where not in PLACES:
        raise unknown("place", where, PLACES)
    if where == "everywhere":
        return torch.ones(tuple(shape), dtype=torch.bool)
    if where == "scattered":
        return torch.rand(tuple(shape), generator=g) < share
    width = shape[-1]
    run = min(width, max(1, round(width * share)))
    start = {"front": 0, "middle": (width - run) // 2, "end": width - run}[where]
    at = torch.arange(width)
    return ((at >= start) & (at < start + run)).expand(tuple(shape)).clone()
