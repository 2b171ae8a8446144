"""How many keys a causal query attends to, on average, in closed form."""

from __future__ import annotations


def attended(context: int, new: int, ratio: int = 1, cap: int | None = None) -> float:
    """Mean over the last ``new`` of ``context`` positions of ``min(cap, (position + 1) // ratio)``.

    Args:
        context: tokens of the sequence after the step.
        new: tokens computed in this step.
        ratio: tokens one key stands for (compressed KV).
        cap: most keys a query takes (window, top-k); None for all.
    """
    return (_sum(context, ratio, cap) - _sum(context - new, ratio, cap)) / new


def _sum(n: int, ratio: int, cap: int | None) -> int:
    """Sum of ``min(cap, p // ratio)`` over p = 1..n."""
    if cap is not None and n >= cap * ratio:
        return _sum(cap * ratio - 1, ratio, None) + cap * (n - cap * ratio + 1)
    q, r = divmod(n + 1, ratio)
    return ratio * q * (q - 1) // 2 + q * r
