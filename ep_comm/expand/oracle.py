"""expand by a loop over rows, in NumPy."""

import numpy as np


def oracle(rows, index):
    """One row at a time."""
    out = np.zeros((len(index), rows.shape[1]), rows.dtype)
    for i, j in enumerate(index):
        if j >= 0:
            out[i] = rows[j]
    return out
