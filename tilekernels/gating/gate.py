"""What a gate's program is built for, on every machine."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Gate:
    """What a program is built for.

    Args:
        options: which tensors are given: mask, bias, image, unmapped, fixed, physical, random,
            scores.
        groups: groups of experts, and how many of them a token may use; equal for no limit.
        copies: columns of the physical map.
        parallel: whether indices become those of a tensor-parallel rank.
    """

    num_experts: int
    num_topk: int
    shared: int
    scoring: str
    options: frozenset[str]
    groups: tuple[int, int] = (1, 1)
    copies: int = 1
    parallel: bool = False


def limited(gate: Gate) -> bool:
    """Whether a token may use some groups only."""
    return gate.groups[0] != gate.groups[1]
