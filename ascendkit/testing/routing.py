"""Expert choices of a MoE layer: even, skewed, on one expert, on one rank, with empty ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit.errors import bad_value, unknown
from ascendkit.testing.draw import generator

if TYPE_CHECKING:
    import torch

ROUTINGS = ("uniform", "zipf", "one_hot_expert", "one_hot_rank", "empty_ranks")


def routing(
    kind: str,
    num_tokens: int,
    num_topk: int,
    num_experts: int,
    seed: int,
    *,
    num_ranks: int = 1,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``topk_idx`` of shape ``[num_tokens, num_topk]``, experts distinct within a token.

    Args:
        kind: one of :data:`ROUTINGS`. ``one_hot_expert``: every token takes one same expert, the
            rest are drawn evenly. ``one_hot_rank``: one rank's experts come first, others only
            when it has too few. ``empty_ranks``: odd ranks receive nothing unless the even ones
            have too few experts. ``zipf``: expert i weighs 1 / (i + 1), in shuffled order.
        dtype: int64 by default.
    """
    import torch

    if kind not in ROUTINGS:
        raise unknown("routing", kind, ROUTINGS)
    if num_topk > num_experts:
        raise bad_value("num_topk", num_topk, f"at most num_experts {num_experts}", num_experts)
    if num_ranks < 1 or num_experts % num_ranks:
        raise bad_value("num_ranks", num_ranks, f"a divisor of num_experts {num_experts}", 1)
    g = generator(seed)
    weight = torch.ones(num_experts)
    rank = torch.arange(num_experts) // max(num_experts // num_ranks, 1)
    if kind == "zipf":
        weight = (1.0 / torch.arange(1, num_experts + 1))[torch.randperm(num_experts, generator=g)]
    elif kind == "one_hot_expert" and num_experts:
        weight[int(torch.randint(num_experts, (), generator=g))] = torch.inf
    elif kind == "one_hot_rank":
        weight[rank == int(torch.randint(num_ranks, (), generator=g))] = 1e30
    elif kind == "empty_ranks":
        weight[rank % 2 == 0] = 1e30
    # Exponential races: the k smallest of Exp(1) / weight are k distinct weighted draws.
    race = torch.empty(num_tokens, num_experts, dtype=torch.float64)
    race.exponential_(generator=g)
    order = (race / weight.double()).argsort(dim=-1, stable=True)
    return order[:, :num_topk].to(dtype or torch.int64)
