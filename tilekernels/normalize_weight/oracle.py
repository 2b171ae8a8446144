"""normalize_weight one float32 addition at a time, in NumPy."""

import numpy as np


def oracle(topk_weights):
    """Denominator and normalized weights."""
    one = np.float32
    tokens, topk = topk_weights.shape
    denominator = np.empty(tokens, one)
    normalized = np.empty((tokens, topk), one)
    with np.errstate(all="ignore"):
        for t in range(tokens):
            sums = list(topk_weights[t])
            for step in (16, 8, 4, 2, 1):
                for j in range(topk):
                    if j % (2 * step) < step and j + step < topk:
                        sums[j] = one(sums[j] + sums[j + step])
            denominator[t] = one(one(1e-20) + sums[0])
            for j in range(topk):
                normalized[t, j] = one(topk_weights[t, j] / denominator[t])
    return denominator, normalized
