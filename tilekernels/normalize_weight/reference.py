"""normalize_weight in torch: halves of 32 columns added five times."""

from __future__ import annotations

import torch

from tilekernels.normalize_weight import EPSILON, MAX_TOPK


def reference(topk_weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Denominator (num_tokens,) and normalized weights (num_tokens, num_topk)."""
    # Zeros stand for missing columns: adding them changes no sum but the sign of a zero, and the
    # 1e-20 takes that away.
    total = torch.nn.functional.pad(topk_weights, (0, MAX_TOPK - topk_weights.shape[1]))
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    denominator = total[:, 0] + EPSILON
    return denominator, topk_weights / denominator[:, None]
