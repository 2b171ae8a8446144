"""How unevenly tokens choose experts, and what that means for the fullest rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ascendkit.errors import bad_value

BALANCED = "balanced"


@dataclass(frozen=True)
class Load:
    """Load of the rank that decides.

    Args:
        factor: its rows over the mean rank's.
        touched: expected experts on it with at least one row.
    """

    factor: float
    touched: float


def load(routing: str | Sequence[float], experts: int, topk: int, ep: int, tokens: float) -> Load:
    """The fullest of ``ep`` ranks when ``tokens`` tokens in all choose ``topk`` of ``experts``.

    Args:
        routing: ``balanced``; ``zipf:<s>``, expert popularity falling as rank^-s; or one weight an
            expert (a histogram of a real run).
        tokens: over all ranks that share the experts.

    Raises ValueError for a histogram of the wrong length or negative weights.
    """
    chosen = routing if isinstance(routing, str) else tuple(float(w) for w in routing)
    return _load(chosen, experts, topk, ep, tokens)


def check(routing: str | Sequence[float], experts: int) -> None:
    """Raise for a routing that :func:`load` cannot read."""
    if routing != BALANCED:
        _popularity(routing if isinstance(routing, str) else tuple(routing), experts, 1)


@lru_cache(maxsize=4096)
def _load(
    routing: str | tuple[float, ...], experts: int, topk: int, ep: int, tokens: float
) -> Load:
    local = experts // ep
    if routing == BALANCED:
        return Load(1.0, local * (1 - (1 - topk / experts) ** tokens))
    share = _popularity(routing, experts, topk)
    ranks = [share[r * local : (r + 1) * local] for r in range(ep)]
    fullest = max(ranks, key=sum)
    touched = max(sum(1 - (1 - q) ** tokens for q in rank) for rank in ranks)
    return Load(sum(fullest) * ep / topk, touched)


@lru_cache(maxsize=256)
def _popularity(routing: str | tuple[float, ...], experts: int, topk: int) -> tuple[float, ...]:
    """Chance that a token chooses each expert; no chance exceeds one."""
    if isinstance(routing, str):
        name, _, s = routing.partition(":")
        try:
            steep = float(s) if name == "zipf" else float("nan")
        except ValueError:
            steep = float("nan")
        if not 0 <= steep <= 4:
            raise bad_value("routing", routing, "balanced, zipf:<0 to 4>, or a list", "zipf:1")
        # Popular experts fall anywhere: a fixed stride through the indices scatters them.
        stride = next(
            n for n in range(int(experts * 0.618) | 1, experts * 2) if _coprime(n, experts)
        )
        weights = [0.0] * experts
        for i in range(experts):
            weights[i * stride % experts] = (i + 1) ** -steep
    else:
        weights = list(routing)
        if len(weights) != experts:
            raise bad_value("routing", f"{len(weights)} weights", f"one an expert: {experts}")
        if min(weights) < 0 or not sum(weights):
            raise bad_value("routing", "negative or all-zero weights", "weights of at least 0")
    return tuple(_capped(weights, topk))


def _coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, a % b
    return a == 1


def _capped(weights: Sequence[float], topk: int) -> list[float]:
    """Scale to a sum of ``topk`` with none above one: what spills over goes to the others."""
    share = [w * topk / sum(weights) for w in weights]
    for _ in range(len(share)):
        over = sum(q - 1 for q in share if q > 1)
        room = sum(q for q in share if q < 1)
        if over <= 1e-12 or not room:
            break
        share = [1.0 if q >= 1 else q * (1 + over / room) for q in share]
    return [min(q, 1.0) for q in share]
