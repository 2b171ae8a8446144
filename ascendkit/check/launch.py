"""Collective cases: how the inputs of all ranks become the outputs of all ranks.

For a case with ``ranks > 1`` an op's ``inputs`` gives one tuple of arguments a rank, and its
``reference`` and ``oracle`` map the list of those to the list of outputs. A launcher is whatever
does that on a platform: one process a rank, or, for the reference, this process alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ascendkit.op import Op


class Launcher(Protocol):
    """Runs one collective call."""

    def __call__(self, op: Op, per_rank: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Outputs of every rank, in rank order, on the CPU."""
        ...


def in_process(op: Op, per_rank: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The reference: all ranks in this process."""
    return list(op.load("reference").reference(list(per_rank)))


LAUNCHERS: dict[str, Launcher] = {"reference": in_process}
"""By platform. Backends that start processes are a second axis: an op's ``launch.py`` has
``launchers()``, which gives those that can run here, and each is held against the reference."""
