"""Philox-4x32-10 random numbers in torch: the generator of cuRAND and of routing at random.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
WORD = 0xFFFFFFFF


def philox(seed: int, sequence: torch.Tensor, block: int = 0) -> list[torch.Tensor]:
    """Four 32-bit words, as int64, of every sequence.

    Args:
        seed: 64-bit key.
        sequence: int64, non-negative, any shape; high 64 bits of the counter.
        block: low 64 bits of the counter: words ``4 * block`` to ``4 * block + 3``.
    """
    import torch

    key = [seed & WORD, seed >> 32 & WORD]
    low = torch.full_like(sequence, block & WORD)
    high = torch.full_like(sequence, block >> 32 & WORD)
    words = [low, high, sequence & WORD, sequence >> 32 & WORD]
    for _ in range(ROUNDS):
        (high0, low0), (high1, low1) = _product(words[0], 0), _product(words[2], 1)
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
        key = [(k + w) & WORD for k, w in zip(key, WEYL)]
    return words


def _product(word: torch.Tensor, which: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Upper and lower word of ``word`` times a multiplier, from halves that fit int64."""
    multiplier = MULTIPLIERS[which]
    upper, lower = (word >> 16) * multiplier, (word & 0xFFFF) * multiplier
    middle = upper + (lower >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (lower & 0xFFFF)
