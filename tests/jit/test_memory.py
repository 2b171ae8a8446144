"""The memory cache and lazy values."""

from __future__ import annotations

import threading
import time

import pytest

from ascendkit.jit import LazyInit
from ascendkit.jit.memory import MemoryCache


def together(count: int, work) -> list[object]:
    results: list[object] = [None] * count
    barrier = threading.Barrier(count)

    def one(index: int) -> None:
        barrier.wait()
        try:
            results[index] = work()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    return results


def test_hit() -> None:
    cache: MemoryCache[list[int]] = MemoryCache()
    made = cache.get("a", lambda: [1])
    assert cache.get("a", lambda: pytest.fail("made twice")) is made
    assert cache.find("a") is made
    cache.drop("a")
    cache.drop("a")
    assert cache.find("a") is None


def test_single_flight() -> None:
    cache: MemoryCache[object] = MemoryCache()
    calls = []

    def make() -> object:
        calls.append(1)
        time.sleep(0.05)
        return object()

    assert len(set(map(id, together(16, lambda: cache.get("a", make))))) == 1
    assert len(calls) == 1


def test_a_failure_reaches_all_waiters_and_is_forgotten() -> None:
    cache: MemoryCache[int] = MemoryCache()
    calls = []

    def fail() -> int:
        calls.append(1)
        time.sleep(0.1)
        raise ValueError("no")

    results = together(8, lambda: cache.get("a", fail))
    assert all(isinstance(result, ValueError) for result in results)
    assert len(calls) == 1
    assert cache.get("a", lambda: 5) == 5


def test_other_names_do_not_wait() -> None:
    cache: MemoryCache[int] = MemoryCache()
    release = threading.Event()

    def slow() -> int:
        assert release.wait(30)
        return 1

    thread = threading.Thread(target=lambda: cache.get("slow", slow))
    thread.start()
    assert cache.get("quick", lambda: 2) == 2
    release.set()
    thread.join()
    assert cache.find("slow") == 1


def test_asking_for_what_one_makes() -> None:
    cache: MemoryCache[int] = MemoryCache()
    with pytest.raises(RuntimeError, match=r"while this thread makes it"):
        cache.get("a", lambda: cache.get("a", lambda: 1))
    assert cache.get("a", lambda: 1) == 1


def test_lazy_once() -> None:
    calls = []

    def make() -> object:
        calls.append(1)
        time.sleep(0.02)
        return object()

    lazy = LazyInit(make)
    assert not calls
    assert len(set(map(id, together(8, lazy.get)))) == 1
    assert len(calls) == 1


def test_lazy_tries_again_after_a_failure() -> None:
    answers = iter([ValueError("first"), None, "value"])

    def make() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lazy = LazyInit(make)
    with pytest.raises(ValueError, match=r"first"):
        lazy.get()
    with pytest.raises(ValueError, match=r"returned None"):
        lazy.get()
    assert lazy.get() == "value"
    assert lazy.get() == "value"


def test_lazy_falsy_values_are_values() -> None:
    values = iter([0, 1])
    lazy = LazyInit(lambda: next(values))
    assert (lazy.get(), lazy.get()) == (0, 0)


def test_lazy_reassignment_keeps_old_owners() -> None:
    lazy = LazyInit(lambda: [1])
    old = lazy.get()
    lazy.set(lambda: [2])
    assert (old, lazy.get()) == ([1], [2])
