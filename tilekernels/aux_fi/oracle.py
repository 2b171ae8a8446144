"""aux_fi by a loop over choices, in NumPy."""

import numpy as np


def oracle(topk_idx, num_experts, num_aux_topk):
    """One choice at a time; product and quotient in float32."""
    one = np.float32
    counts = [0] * num_experts
    for expert in topk_idx.ravel().tolist():
        if 0 <= expert < num_experts:
            counts[expert] += 1
    tokens = max(topk_idx.shape[0], 1)
    return np.array([one(c) * one(num_experts) / one(tokens * num_aux_topk) for c in counts], one)
