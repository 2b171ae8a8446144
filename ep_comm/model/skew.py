"""What an uneven gate costs: draw routings, count rows per rank, compare the fullest with the mean.

The draw is a race of exponentials per expert: the k first are k distinct experts, weighted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascendkit.errors import bad_value

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Skew:
    """Averages over draws.

    Args:
        copies: distinct ranks of a token.
        received: largest over mean of the rows a rank receives (each token once).
        computed: largest over mean of the choices a rank computes.
        draws: how many routings were drawn.
        seed: repeats them.
    """

    copies: float
    received: float
    computed: float
    draws: int
    seed: int


def weights(gate: str, num_experts: int) -> list[float]:
    """``uniform``, or ``zipf:<s>``: expert i weighs (i + 1) ** -s; the draw shuffles them."""
    kind, _, power = gate.partition(":")
    if kind == "uniform":
        return [1.0] * num_experts
    try:
        s = float(power or 1.0)
    except ValueError:
        s = float("nan")
    if kind != "zipf" or not 0 <= s <= 10:
        raise bad_value("gate", gate, "uniform, or zipf:<s> with s from 0 to 10", "zipf:1")
    return [(i + 1.0) ** -s for i in range(num_experts)]


def skew(
    gate: Sequence[float] | str,
    num_experts: int,
    num_topk: int,
    ranks: int,
    *,
    tokens: int = 2048,
    draws: int = 8,
    seed: int | None = None,
) -> Skew:
    """Monte Carlo of a gate.

    Args:
        gate: see :func:`weights`, or a weight for every expert.
        tokens: of each draw, over all ranks.
    """
    import numpy as np

    if num_experts % ranks:
        raise bad_value("ranks", ranks, f"a divisor of num_experts {num_experts}")
    if not 1 <= num_topk <= num_experts:
        raise bad_value("num_topk", num_topk, f"1 to {num_experts}", num_experts)
    named = isinstance(gate, str)
    weight = np.asarray(weights(gate, num_experts) if isinstance(gate, str) else gate, float)
    if weight.shape != (num_experts,) or not (weight > 0).all():
        raise bad_value("gate", weight.shape, f"{num_experts} positive weights")
    seed = random.randrange(1 << 31) if seed is None else seed
    g = np.random.default_rng(seed)
    copies = received = computed = 0.0
    for _ in range(draws):
        own = g.permutation(weight) if named else weight
        race = g.standard_exponential((tokens, num_experts)) / own
        chosen = np.argpartition(race, num_topk - 1, axis=1)[:, :num_topk]
        rank = chosen // (num_experts // ranks)
        once = _distinct(rank, ranks)
        copies += once.sum() / tokens / draws
        received += once.max() / once.mean() / draws
        per_rank = np.bincount(rank.ravel(), minlength=ranks)
        computed += per_rank.max() / per_rank.mean() / draws
    return Skew(float(copies), float(received), float(computed), draws, seed)


def _distinct(rank: np.ndarray, ranks: int) -> np.ndarray:
    """Tokens that reach each rank."""
    import numpy as np

    ordered = np.sort(rank, axis=1)
    new = np.ones_like(ordered, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return np.bincount(ordered[new], minlength=ranks)
