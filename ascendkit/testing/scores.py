"""Scores that top-k, gates and selections get wrong: ties, shared prefixes, NaN, infinities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ascendkit.errors import unknown
from ascendkit.testing.draw import generator, normal, place

if TYPE_CHECKING:
    import torch

    Draw = Callable[[Sequence[int], torch.Generator], torch.Tensor]


def scores(
    kind: str, shape: Sequence[int], seed: int, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Scores of ``shape`` (rows of candidates), float32 unless ``dtype`` says otherwise.

    Args:
        kind: one of :data:`SCORES`.
    """
    import torch

    if kind not in _KINDS:
        raise unknown("scores", kind, _KINDS)
    return _KINDS[kind](shape, generator(seed)).to(dtype or torch.float32)


def _shared_prefix(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    """Equal in their upper 24 bits: a radix select must reach the last digit to tell them apart."""
    import torch

    low = torch.randint(0, 256, tuple(shape), generator=g, dtype=torch.int32)
    return (low + 0x3F800000).view(torch.float32)


def _two_valued(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return torch.randint(0, 2, tuple(shape), generator=g).float() - 0.5


def _ties(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    """Few distinct values, so that the k-th place is almost always tied."""
    return (normal(shape, g) * 2).round() / 2


def _ramp(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return torch.arange(shape[-1], dtype=torch.float32).expand(tuple(shape)).clone()


def _signed_zeros(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    return _two_valued(shape, g) * 0.0


def _subnormal(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
    import torch

    return torch.randint(1, 1 << 23, tuple(shape), generator=g, dtype=torch.int32).view(
        torch.float32
    )


def _with(value: float, where: str) -> Draw:
    def draw(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
        return normal(shape, g).masked_fill(place(shape, where, g), value)

    return draw


def _full(value: float) -> Draw:
    def draw(shape: Sequence[int], g: torch.Generator) -> torch.Tensor:
        import torch

        return torch.full(tuple(shape), value)

    return draw


_INF, _NAN = float("inf"), float("nan")

_KINDS: dict[str, Draw] = {
    "random": normal,
    "ties": _ties,
    "shared_prefix": _shared_prefix,
    "all_equal": _full(0.25),
    "two_valued": _two_valued,
    "relu": lambda shape, g: normal(shape, g).relu(),
    "ascending": _ramp,
    "descending": lambda shape, g: -_ramp(shape, g),
    "signed_zeros": _signed_zeros,
    "subnormal": _subnormal,
    "nan": _with(_NAN, "scattered"),
    "nan_front": _with(_NAN, "front"),
    "nan_end": _with(_NAN, "end"),
    "all_nan": _full(_NAN),
    "inf": _with(_INF, "scattered"),
    "minus_inf": _with(-_INF, "scattered"),
    "minus_inf_end": _with(-_INF, "end"),
    "all_minus_inf": _full(-_INF),
}

SCORES = tuple(_KINDS)
FINITE_SCORES = tuple(k for k in SCORES if "nan" not in k and "inf" not in k)
"""Kinds without NaN or infinity."""
