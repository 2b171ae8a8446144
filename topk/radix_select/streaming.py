"""The streaming algorithm itself, in NumPy: one pass, a threshold, and a count of its work.

The definition the device kernels follow and docs/topk.md proves a bound for. Blocks of a row are
visited in a uniform random order. What passes the threshold is appended to the candidates; once
``slack`` of them have come on top of ``topk``, a radix select cuts back to ``topk`` and the worst
survivor becomes the threshold.

Values and indices are one 64-bit number, so that all candidates differ and ties need no rule of
their own: larger value first, then smaller index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LAST = (1 << 32) - 1


@dataclass(frozen=True)
class Streamed:
    """What a pass found and what it took.

    Args:
        indices: int64 (min(topk, row_len),), best first.
        appended: elements that passed the threshold.
        compactions: times the candidates were cut back, the last one included.
        work: candidates that all compactions looked at.
    """

    indices: np.ndarray
    appended: int
    compactions: int
    work: int


def stream(
    row: np.ndarray, topk: int, order: np.ndarray, block: int = 4096, slack: int = 4096
) -> Streamed:
    """Select the ``topk`` best of ``row``.

    Args:
        row: float16, float32 or float64 of float32 values, (row_len,).
        order: blocks in the order of the visit, each once.
        block: elements of a block.
        slack: candidates above ``topk`` that trigger a compaction.
    """
    numbers = ranked(row)
    threshold = np.uint64(0)
    candidates = np.empty(0, np.uint64)
    appended = compactions = work = 0
    for b in order:
        mine = numbers[b * block : (b + 1) * block]
        passing = mine[mine >= threshold]
        candidates = np.concatenate([candidates, passing])
        appended += len(passing)
        if len(candidates) >= topk + slack:
            work += len(candidates)
            compactions += 1
            candidates = radix_select(candidates, topk)
            threshold = candidates.min() + np.uint64(1)
    work += len(candidates)
    compactions += 1
    best = np.sort(radix_select(candidates, topk))[::-1]
    return Streamed((LAST - (best & np.uint64(LAST))).astype(np.int64), appended, compactions, work)


def radix_select(numbers: np.ndarray, topk: int) -> np.ndarray:
    """The ``topk`` largest of distinct 64-bit numbers: eight bits a pass, highest first."""
    if len(numbers) <= topk:
        return numbers
    kept, left, wanted = [], numbers, topk
    for shift in range(56, -1, -8):
        digit = ((left >> np.uint64(shift)) & np.uint64(255)).astype(np.int64)
        count = np.bincount(digit, minlength=256)
        at_least = np.cumsum(count[::-1])[::-1]
        pivot = int(np.flatnonzero(at_least >= wanted)[-1])
        kept.append(left[digit > pivot])
        wanted -= int(at_least[pivot] - count[pivot])
        left = left[digit == pivot]
        if len(left) == wanted:
            break
    return np.concatenate([*kept, left])


def ranked(row: np.ndarray) -> np.ndarray:
    """uint64 per element: the policy's order of values above the reversed index, never 0."""
    x = np.asarray(row, np.float32) + np.float32(0)  # -0.0 becomes 0.0
    bits = x.view(np.uint32)
    negative = bits >> np.uint32(31) == 1
    key = np.where(negative, ~bits, bits | np.uint32(1 << 31))
    key = np.where(np.isnan(x), np.uint32(LAST), key)
    place = np.uint64(LAST) - np.arange(len(x), dtype=np.uint64)
    return (key.astype(np.uint64) << np.uint64(32)) | place
