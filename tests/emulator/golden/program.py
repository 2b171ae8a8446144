"""Checks of instructions that need more than rows of registers: a kernel, a run, a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ascendkit.emulator.kernel import EmulatedKernel


@dataclass(frozen=True)
class Check:
    """One run of one program.

    Attributes:
        names: the instructions whose work the verdict depends on.
        about: what is checked.
        run: (generator, wrong) -> what differs, in words, or nothing. ``wrong`` is passed to the
            kernel: not 0, its text spoils the result itself, for names that have no hook.
        hooked: the emulator can make these instructions fail (see ``harness.fault``).
    """

    names: tuple[str, ...]
    about: str
    run: Callable[[np.random.Generator, int], str]
    hooked: bool = True


@cache
def compiled(text: str) -> EmulatedKernel:
    """The kernel of a text."""
    return EmulatedKernel(text)


def first_difference(
    got: np.ndarray, want: np.ndarray, what: str, wrong: np.ndarray | None = None
) -> str:
    """Where two arrays differ first; ``wrong`` marks differences if equality does not."""
    bad = np.asarray(got != want if wrong is None else wrong)
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{what}: at {at} got {got[at]}, wanted {want[at]} ({int(bad.sum())} differ)"


def all_of(verdicts: Iterable[str]) -> str:
    """Joins what is wrong."""
    return "\n".join(v for v in verdicts if v)


def flat(checks: Sequence[Check]) -> Iterator[tuple[str, Check]]:
    """(instruction, check) pairs."""
    for check in checks:
        for name in check.names:
            yield name, check
