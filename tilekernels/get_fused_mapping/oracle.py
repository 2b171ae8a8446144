"""get_fused_mapping by lists, in NumPy."""

import numpy as np


def oracle(topk_idx, num_experts, num_expanded_tokens, alignment):
    """Entries listed an expert, then laid out one after the other."""
    topk = topk_idx.shape[1]
    entries = [[] for _ in range(num_experts)]
    for i, expert in enumerate(topk_idx.ravel().tolist()):
        if 0 <= expert < num_experts:
            entries[expert].append(i)
    of_place = np.full((3, num_expanded_tokens), -1, np.int32)
    places = np.full(topk_idx.size, -1, np.int32)
    start, end, sizes = (np.zeros(num_experts, np.int32) for _ in range(3))
    at = 0
    for expert, mine in enumerate(entries):
        start[expert] = at
        for number, i in enumerate(mine):
            if at + number < num_expanded_tokens:
                of_place[:, at + number] = expert, i // topk, i
                places[i] = at + number
        sizes[expert] = (len(mine) + alignment - 1) // alignment * alignment
        at += sizes[expert]
        end[expert] = at
    return (*of_place, places.reshape(topk_idx.shape), start, end, sizes)
