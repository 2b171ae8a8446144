"""Squeezing stores and the library's sort."""

from __future__ import annotations

import numpy as np

BLOCK = 32


def squeezed(
    memory: np.ndarray, start: int, codes: np.ndarray, on: np.ndarray, finished: bool
) -> tuple[np.ndarray, int]:
    """Memory after the kept elements went to byte ``start`` on, and how many bytes were kept.

    Without an end only whole blocks of 32 bytes are there.
    """
    result = memory.copy()
    kept = codes[on].view(np.uint8)
    end = start + len(kept)
    stop = end if finished else max(start, end // BLOCK * BLOCK)
    result[start:stop] = kept[: stop - start]
    return result, len(kept)


def sort(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending values and where each was; equal ones in order (guessed)."""
    places = np.argsort(values, kind="stable")
    return values[places], places.astype(np.uint32)
