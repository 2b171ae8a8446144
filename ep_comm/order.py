"""In which order rows are sent and take their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class Arrivals:
    """Orders of arrival: as they are, or drawn.

    Devices hand out slots by atomics, so any order may occur. Drawing one shows on a CPU whether a
    result depends on it.

    Args:
        seed: None for the order of tokens.
        rank: draws differ by rank.
    """

    def __init__(self, seed: int | None, rank: int) -> None:
        self._seed, self._rank = seed, rank
        self._generator: torch.Generator | None = None

    @property
    def natural(self) -> bool:
        """Whether rows keep the order of their tokens."""
        return self._seed is None

    def __call__(self, count: int) -> torch.Tensor | None:
        """A permutation of ``count``, or None."""
        import torch

        if self._seed is None:
            return None
        if self._generator is None:
            self._generator = torch.Generator().manual_seed(self._seed * 1009 + self._rank)
        return torch.randperm(count, generator=self._generator)
