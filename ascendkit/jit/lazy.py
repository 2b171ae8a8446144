"""A value made on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ascendkit.jit import forks

T = TypeVar("T")


class LazyInit(Generic[T]):
    """Holds a factory and calls it once, on the first ``get``.

    A factory that raises is called again by the next ``get``; one that returns None is an error.
    ``set`` replaces the factory; values handed out before stay valid.
    """

    def __init__(self, factory: Callable[[], T]) -> None:
        self.set(factory)
        forks.register(self)

    def set(self, factory: Callable[[], T]) -> None:
        """Use ``factory`` from now on."""
        self._factory = factory
        self._value: T | None = None
        self._lock = threading.RLock()

    def get(self) -> T:
        """The value, made now if it is not there."""
        value = self._value
        if value is not None:
            return value
        with self._lock:
            if self._value is None:
                made = self._factory()
                if made is None:
                    raise ValueError("a lazy value's factory returned None, wanted an object")
                self._value = made
            return self._value

    def after_fork(self) -> None:
        """Replace the lock, which a thread lost in the fork may have held."""
        self._lock = threading.RLock()
