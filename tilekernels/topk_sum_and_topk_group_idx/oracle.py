"""topk_sum_and_topk_group_idx by sorting Python numbers."""

import math

import numpy as np


def oracle(scores, num_topk_sum, num_topk_groups):
    """Groups of every token, best sum first."""
    out = np.empty((len(scores), num_topk_groups), np.int64)
    for t, token in enumerate(scores):
        sums = []
        for group in token:
            best = sorted((-math.inf if math.isnan(s) else s for s in group.tolist()), reverse=True)
            total = best[0] if num_topk_sum == 1 else float(np.float32(best[0] + best[1]))
            sums.append(-math.inf if math.isnan(total) else total)
        # sorted() is stable: equal sums keep their order.
        out[t] = sorted(range(len(sums)), key=lambda g: -sums[g])[:num_topk_groups]
    return out
