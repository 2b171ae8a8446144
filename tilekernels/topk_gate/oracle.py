"""topk_gate by brute force, straight from the words: take the best expert left, num_topk times."""

from __future__ import annotations

import math

import numpy as np


def oracle(scores: np.ndarray, num_topk: int) -> np.ndarray:
    """Indices int64 (num_tokens, num_topk) of scores float32 (num_tokens, num_experts)."""
    out = np.empty((len(scores), num_topk), np.int64)
    for token, row in enumerate(scores.tolist()):
        left = [-math.inf if math.isnan(s) else s for s in row]
        taken: list[int] = []
        for _ in range(num_topk):
            best = -1
            for expert, score in enumerate(left):
                if expert not in taken and (best < 0 or score > left[best]):
                    best = expert
            taken.append(best)
        out[token] = taken
    return out
