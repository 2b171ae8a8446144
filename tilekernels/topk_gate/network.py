"""The k-th largest of values spread over lanes and registers, as a list of butterfly steps.

Worked out in Python while a kernel is built. Values sit in ``groups`` registers of each of ``lanes``
lanes. Every register is sorted across blocks of p lanes (p: k rounded up to a power of two), then
registers and blocks are merged, keeping the p largest: of two sorted lists a (descending) and b
(ascending) these are max(a[i], b[i]), a bitonic sequence. Sorting networks after Batcher, "Sorting
networks and their applications", 1968, with the first step of each merge mirrored, so that the
direction of an exchange depends on one bit of the lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

EXCHANGE, MAXIMUM, LOCAL, MINIMUM, BROADCAST = (
    "exchange",
    "maximum",
    "local",
    "minimum",
    "broadcast",
)


@dataclass(frozen=True)
class Step:
    """One step on ``register``.

    ======== =====================================================================================
    EXCHANGE with the lane whose number differs by ``mask``: the lane whose ``bit`` is clear keeps
             the larger value, the other the smaller; the other way round where ``flip``
    MAXIMUM  keep the larger of this lane's value and that of the lane that differs by ``mask``
    MINIMUM  the smaller
    LOCAL    keep the larger of this register and register ``mask`` of the same lane
    BROADCAST take the value of lane ``mask`` of the block of ``bit`` lanes
    ======== =====================================================================================
    """

    kind: str
    register: int
    mask: int
    bit: int = 0
    flip: bool = False


def pow2(n: int) -> int:
    """Smallest power of two that is at least ``n``."""
    return 1 << (n - 1).bit_length() if n > 1 else 1


def threshold(groups: int, lanes: int, k: int) -> tuple[Step, ...]:
    """Steps after which register 0 of every lane holds the k-th largest of all values.

    Args:
        groups, lanes: there are ``groups * lanes`` values; lanes is a power of two, at least k.
    """
    return tuple(_threshold(groups, lanes, k, pow2(k)))


def _threshold(groups: int, lanes: int, k: int, p: int) -> Iterator[Step]:
    # With one block and k == p, the p largest need no order: their least is wanted.
    in_order = p < lanes or k < p
    yield from _largest(tuple(range(groups)), p, flip=False, in_order=in_order)
    block = p
    while block < lanes:
        # Mirrored within the block: a descending list meets the other's ascending one.
        yield Step(MAXIMUM, 0, block | (p - 1))
        block *= 2
        if block < lanes or k < p:
            yield from _merge(0, p, flip=False)
    if k == p:
        yield from (Step(MINIMUM, 0, bit) for bit in _bits(p))
    else:
        yield Step(BROADCAST, 0, k - 1, p)


def _largest(registers: tuple[int, ...], p: int, *, flip: bool, in_order: bool) -> Iterator[Step]:
    """The p largest of some registers, a block, into the first of them; sorted if ``in_order``."""
    first, half = registers[0], len(registers) // 2
    if not half:
        if in_order or flip:
            yield from _sort(first, p, flip=flip)
        return
    yield from _largest(registers[:half], p, flip=False, in_order=True)
    yield from _largest(registers[half:], p, flip=True, in_order=True)
    yield Step(LOCAL, first, registers[half])
    if in_order:
        yield from _merge(first, p, flip=flip)


def _sort(register: int, p: int, *, flip: bool) -> Iterator[Step]:
    """Sort any p lanes: descending, or ascending if ``flip``."""
    size = 2
    while size <= p:
        yield Step(EXCHANGE, register, size - 1, size // 2, flip)
        for bit in _bits(size // 2):
            yield Step(EXCHANGE, register, bit, bit, flip)
        size *= 2


def _merge(register: int, p: int, *, flip: bool) -> Iterator[Step]:
    """Sort p lanes that hold a bitonic sequence."""
    for bit in _bits(p):
        yield Step(EXCHANGE, register, bit, bit, flip)


def _bits(p: int) -> Iterator[int]:
    """p/2, p/4 ... 1."""
    while p > 1:
        p //= 2
        yield p
