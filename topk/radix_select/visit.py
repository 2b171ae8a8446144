"""In which order the blocks of a row are visited: uniform at random, whatever the data are.

The bound on the work (docs/topk.md) is an expectation over this order, so the order may not depend
on what it protects against: it is drawn once a process from the system's entropy. Adversarial rows
then cannot know it.

For a row of ``m`` blocks the order is the permutation of the next power of two with entries of
``m`` and above left out: what is left of a uniform permutation is a uniform permutation.
"""

from __future__ import annotations

import secrets
from functools import lru_cache

import numpy as np


def table(most: int, seed: int | None = None) -> np.ndarray:
    """int32 (2 * most,): entries ``p`` to ``2 * p`` permute ``range(p)``, for powers of two ``p``.

    Args:
        most: the largest ``p``, a power of two.
        seed: fixes the draw; by default the system's entropy does.
    """
    rng = np.random.Generator(np.random.PCG64(secrets.randbits(128) if seed is None else seed))
    out = np.zeros(2 * most, np.int32)
    p = 1
    while p <= most:
        out[p : 2 * p] = rng.permutation(p)
        p *= 2
    return out


def order(blocks: int, draws: np.ndarray) -> np.ndarray:
    """The visit order of ``blocks`` blocks, from :func:`table`."""
    p = 1 << max(blocks - 1, 0).bit_length()
    mine = draws[p : 2 * p]
    return mine[mine < blocks]


@lru_cache(maxsize=1)
def process_table(most: int) -> np.ndarray:
    """One table for the life of the process."""
    return table(most)
