"""Sizes that find bugs: around every alignment, none, one, odd and prime."""

from __future__ import annotations

from collections.abc import Iterable

ALIGNMENTS = (16, 32, 64, 128, 512)
"""What kernels round to: vector lanes, warps, blocks, tiles, bursts."""

COUNTS = (0, 1, 2, 3, 5, 7, 13, 17, 31, 61, 127, 257)
"""Zero work, one element, then odd and prime."""


def around(*alignments: int) -> tuple[int, ...]:
    """a-1, a and a+1 of every alignment, ascending, without repeats."""
    return tuple(sorted({a + d for a in alignments for d in (-1, 0, 1)}))


def sizes(
    *alignments: int, low: int = 0, high: int | None = None, multiple_of: int = 1
) -> tuple[int, ...]:
    """:func:`around` and :data:`COUNTS`, kept to ``low <= n <= high`` and legal multiples."""
    return _legal({*around(*alignments), *COUNTS}, low, high, multiple_of)


def _legal(found: Iterable[int], low: int, high: int | None, multiple_of: int) -> tuple[int, ...]:
    top = max(found) if high is None else high
    return tuple(sorted(n for n in found if low <= n <= top and n % multiple_of == 0))
