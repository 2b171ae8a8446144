"""Quantisation scales, and inputs whose scales are odd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ascendkit.errors import unknown
from ascendkit.testing.draw import generator, normal

if TYPE_CHECKING:
    import torch

    Draw = Callable[[Sequence[int], torch.Generator], torch.Tensor]


def scales(kind: str, shape: Sequence[int], seed: int) -> torch.Tensor:
    """Non-negative float32 scales of ``shape``.

    Args:
        kind: one of :data:`SCALES`. ``halfway`` lies between two powers of two (what a rounding of
            scales to powers of two must decide); ``above_power`` one ulp above a power of two.
    """
    if kind not in _KINDS:
        raise unknown("scales", kind, _KINDS)
    return _KINDS[kind](shape, generator(seed))


def amax_ties(
    rows: int, blocks: int, block: int, seed: int, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """``[rows, blocks * block]`` values whose block maximum occurs twice, with both signs."""
    import torch

    g = generator(seed)
    x = normal((rows, blocks, block), g)
    top = x.abs().amax(dim=-1, keepdim=True) if block else x
    at = torch.rand(rows, blocks, block, generator=g).argsort(dim=-1)[..., :2]
    sign = torch.tensor([1.0, -1.0])[: at.shape[-1]]
    x = x.scatter(-1, at, (top * sign).expand(rows, blocks, at.shape[-1])) if block else x
    return x.reshape(rows, blocks * block).to(dtype or torch.float32)


def _power(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return torch.exp2(torch.randint(-20, 21, tuple(shape), generator=g).float())


def _plain(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    return normal(shape, g).abs() + 2.0**-20


def _subnormal(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    bits = torch.randint(1, 1 << 23, tuple(shape), generator=g, dtype=torch.int32)
    return bits.view(torch.float32)


def _above_power(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return (_power(shape, g).view(torch.int32) + 1).view(torch.float32)


def _some_zero(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return _plain(shape, g) * torch.randint(0, 2, tuple(shape), generator=g)


def _constant(value: float) -> Draw:
    def draw(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
        import torch

        return torch.full(tuple(shape), value)

    return draw


_KINDS: dict[str, Draw] = {
    "power_of_two": _power,
    "non_power_of_two": _plain,
    "halfway": lambda shape, g: _power(shape, g) * 1.5,
    "above_power": _above_power,
    "equal": _constant(0.375),
    "some_zero": _some_zero,
    "zero": _constant(0.0),
    "subnormal": _subnormal,
    "largest": _constant(3.4028234663852886e38),
}

SCALES = tuple(_KINDS)
