"""What the numbers of a command line may be; a refusal names the key as it was typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ascendkit.errors import bad_value
from ep_comm.checks import (
    MAX_EXPERTS,
    MAX_RANKS,
    MAX_TOKENS,
    MAX_TOPK,
    integer,
    nearest_divisor,
    nearest_multiple,
    row_step,
)
from ep_comm.size import CHANNELS

LIMITS = {
    "ranks": (1, MAX_RANKS),
    "scaleup": (0, MAX_RANKS),
    "scaleout": (1, MAX_RANKS),
    "tokens": (1, MAX_TOKENS),
    "hidden": (1, 1 << 24),
    "topk": (1, MAX_TOPK),
    "experts": (1, MAX_EXPERTS),
    "channels": (1, CHANNELS),
    "intermediate": (1, 1 << 24),
    "cores": (1, 1 << 10),
    "repeats": (1, 1 << 20),
    "sample": (1, 1 << 20),
    "matrix": (0, 1 << 20),
    "seed": (0, (1 << 63) - 1),
}


def numbers(c: Mapping[str, Any], **other: tuple[int, int]) -> None:
    """Every number of a command within its limits, each of a list.

    Args:
        c: the command's keys.
        other: limits of this command alone.

    Raises:
        TypeError, ValueError: the key, what was got, the limits, and the nearest legal number.
    """
    for key, (low, high) in {**LIMITS, **other}.items():
        for one in _listed(c.get(key)):
            # A null default stands for a number drawn later.
            if one is not None:
                integer(key, one, low, high)


def shapes(c: Mapping[str, Any], ranks: int) -> None:
    """Numbers that must fit each other: rows, experts, ranks and nodes; ValueError else."""
    for hidden in _listed(c["hidden"]):
        step = row_step(1 if c.get("fp8") else 2)
        if hidden % step:
            raise bad_value(
                "hidden", hidden, f"a multiple of {step}", nearest_multiple(hidden, step)
            )
    if c["experts"] % ranks:
        raise bad_value(
            "experts", c["experts"], f"a multiple of ranks {ranks}",
            nearest_multiple(c["experts"], ranks),
        )  # fmt: skip
    for topk in _listed(c["topk"]):
        if topk > c["experts"]:
            raise bad_value("topk", topk, f"at most experts {c['experts']}", c["experts"])
    nodes(c["scaleup"], ranks)


def nodes(scaleup: int, ranks: int) -> None:
    """Ranks of a node divide all ranks; 0 stands for all. ValueError else."""
    if scaleup and ranks % scaleup:
        raise bad_value(
            "scaleup", scaleup, f"a divisor of ranks {ranks}, or 0", nearest_divisor(scaleup, ranks)
        )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
