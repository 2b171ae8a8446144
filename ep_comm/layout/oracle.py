"""layout by a walk over tokens, in NumPy."""

import numpy as np


def oracle(topk_idx, num_experts, num_ranks):
    """Walk the tokens in order and hand out the next free slot of each rank."""
    tokens, topk = topk_idx.shape
    share = num_experts // num_ranks
    per_rank = np.zeros(num_ranks, np.int32)
    per_expert = np.zeros(num_experts, np.int32)
    slot = np.full((tokens, topk), -1, np.int32)
    for t in range(tokens):
        where = {}
        for j in range(topk):
            expert = int(topk_idx[t, j])
            if expert >= 0:
                per_expert[expert] += 1
                where[expert // share] = j
        for rank, j in where.items():
            slot[t, j] = per_rank[rank]
            per_rank[rank] += 1
    return np.concatenate([per_rank, per_expert, slot.ravel()])
