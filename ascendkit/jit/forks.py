"""What must be put right in a forked child, where only the forking thread lives on."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something with locks that a thread lost in a fork may have held."""

    def after_fork(self) -> None:
        """Make new locks; forget what other threads had under way."""


_owners: weakref.WeakSet[Forkable] = weakref.WeakSet()


def register(owner: Forkable) -> None:
    """Call ``owner.after_fork()`` in every forked child, as long as ``owner`` lives."""
    _owners.add(owner)


def _after_fork() -> None:
    for owner in list(_owners):
        owner.after_fork()


os.register_at_fork(after_in_child=_after_fork)
