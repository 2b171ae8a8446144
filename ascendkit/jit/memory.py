"""The memory cache: one value a key, made once however many threads ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.owner = threading.get_ident()
        self.value: T | None = None
        self.error: BaseException | None = None


class MemoryCache(Generic[T]):
    """Values by name. Threads asking for a value in the making wait; other names do not.

    A failure goes to everyone who waited for it and is not remembered.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget values and flights; in a forked child the threads that flew them are gone."""
        self._values: dict[str, T] = {}
        self.abandon_flights()

    def abandon_flights(self) -> None:
        """Forget flights only."""
        self._flights: dict[str, _Flight[T]] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> T | None:
        """The value, if it is there."""
        return self._values.get(name)

    def drop(self, name: str) -> None:
        """Forget one value."""
        self._values.pop(name, None)

    def get(self, name: str, make: Callable[[], T]) -> T:
        """The value called ``name``, from ``make`` if need be.

        Raises:
            RuntimeError: ``make`` asks for the value it is making.
        """
        value = self._values.get(name)
        if value is not None:
            return value
        with self._lock:
            value = self._values.get(name)
            if value is not None:
                return value
            flight = self._flights.get(name)
            if flight is None:
                mine = self._flights[name] = _Flight()
        if flight is not None:
            return _wait(name, flight)
        try:
            mine.value = make()
            self._values[name] = mine.value
            return mine.value
        except BaseException as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                self._flights.pop(name, None)
            mine.landed.set()


def _wait(name: str, flight: _Flight[T]) -> T:
    if flight.owner == threading.get_ident():
        raise RuntimeError(f"{name} is asked for while this thread makes it")
    flight.landed.wait()
    if flight.error is not None:
        raise flight.error
    return cast(T, flight.value)
