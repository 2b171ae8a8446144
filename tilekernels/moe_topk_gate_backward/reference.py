"""moe_topk_gate_backward in torch: every sum in a fixed order."""

from __future__ import annotations

import torch

from ascendkit.exact import fma
from tilekernels.gating import EPSILON
from tilekernels.moe_topk_gate_backward.slope import slope

Optional = torch.Tensor | None
LANES, WIDTH = 32, 4


def reference(
    scores: torch.Tensor,
    topk_idx: torch.Tensor,
    topk_weights: torch.Tensor,
    grad_topk_weights: torch.Tensor,
    routed_scaling_factor: float,
    scoring_func: str,
    mask: Optional,
    grad_scores_sum: Optional,
) -> torch.Tensor:
    """float32 like ``scores``."""
    (tokens, experts), topk = scores.shape, topk_idx.shape[1]
    valid = (topk_idx >= 0) & (topk_idx < experts)
    at = topk_idx.where(valid, 0)
    chosen = scores.gather(1, at).where(valid, 0.0)
    grad = grad_topk_weights[:, :topk].where(valid, 0.0)
    weights = topk_weights[:, :topk].where(valid, 0.0)
    inner = tree(grad * weights)
    scale = torch.tensor(routed_scaling_factor, dtype=torch.float32)
    share = ((scale * grad - inner) / (tree(chosen) + EPSILON)).where(valid, 0.0)
    du = torch.zeros_like(scores)
    for k in range(topk):
        du.scatter_add_(1, at[:, k : k + 1], share[:, k : k + 1])
    if grad_scores_sum is not None and mask is not None:
        count = grad_scores_sum.shape[0]
        h = grad_scores_sum.repeat_interleave(tokens // count, 0)
        total = over_experts(scores, torch.ones(()))
        inverse = torch.where(mask[:, None] & (total != 0), 1 / total, 0.0)
        du = du + (h - over_experts(scores, h) * inverse) * inverse
    if scoring_func == "softmax":
        return scores * (du - over_experts(du, scores))
    if scoring_func == "sigmoid":
        return du * (scores * (1 - scores))
    return du * slope(scores)


def tree(terms: torch.Tensor) -> torch.Tensor:
    """(tokens, n) -> (tokens, 1): halves added, of as many columns as the next power of two."""
    n = terms.shape[1]
    total = torch.nn.functional.pad(terms, (0, (1 << (n - 1).bit_length()) - n))
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return total


def over_experts(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(tokens, experts) -> (tokens, 1): sums of products by fused multiply-adds.

    Experts are dealt out by fours to 32 sums, each in the order of experts; then the tree.
    """
    a, b = torch.broadcast_tensors(a, b)
    missing = -a.shape[1] % (LANES * WIDTH)
    a, b = (
        torch.nn.functional.pad(t, (0, missing)).unflatten(1, (-1, LANES, WIDTH)) for t in (a, b)
    )
    total = torch.zeros(a.shape[0], LANES)
    for i in range(a.shape[1]):
        for v in range(WIDTH):
            total = fma(a[:, i, :, v], b[:, i, :, v], total)
    return tree(total)
