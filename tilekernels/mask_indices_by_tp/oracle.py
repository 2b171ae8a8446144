"""mask_indices_by_tp by writing out who holds what, in NumPy."""

import numpy as np


def oracle(indices, n, num_ep_ranks, tp_rank, num_tp_ranks):
    """The rank's experts listed in order: an index becomes its place in the list."""
    per_rank = n // num_ep_ranks
    last = max([n, *(int(i) + 1 for i in indices.ravel() if i < 2**31)])
    held = [e for e in range(last) if e // per_rank % num_tp_ranks == tp_rank]
    place = {e: i for i, e in enumerate(held)}
    flat = [place.get(int(i), -1) for i in indices.ravel()]
    return np.array(flat, np.int64).reshape(indices.shape)
