"""All ranks as threads of this process: the reference machine for tests, simulation and debugging.

``run(4, work)`` calls ``work(group)`` in four threads, one a rank.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ep_comm.transport.base import Transport
from ep_comm.transport.board import Board, slot_bytes
from ep_comm.transport.onesided import OneSided

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class Shared:
    """What the threads of one group share: memories by the order in which they are asked for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._memories: dict[tuple[Any, ...], list[torch.Tensor]] = {}

    def memory(self, key: tuple[Any, ...], size: int, num_bytes: int) -> list[torch.Tensor]:
        """The same list of tensors for every thread that asks with this key."""
        import torch

        with self._lock:
            if key not in self._memories:
                make = torch.zeros
                self._memories[key] = [make(num_bytes, dtype=torch.uint8) for _ in range(size)]
            return self._memories[key]

    def drop(self, key: tuple[Any, ...]) -> None:
        """Forget a memory; the tensors live as long as somebody holds them."""
        with self._lock:
            self._memories.pop(key, None)


class ThreadMemory:
    """Memory that other threads write directly; with ``remote`` ranks, only through put."""

    def __init__(
        self, shared: Shared, key: tuple[Any, ...], rank: int, size: int, num_bytes: int
    ) -> None:
        self.rank, self.size, self.num_bytes = rank, size, num_bytes
        self._shared, self._key = shared, key
        self._all = shared.memory(key, size, num_bytes)
        self.local = self._all[rank]

    def peer(self, rank: int) -> torch.Tensor | None:
        """Every thread's memory is in reach."""
        return self._all[rank]

    def put(self, rank: int, offset: int, data: torch.Tensor) -> None:
        """A store."""
        self._all[rank][offset : offset + len(data)].copy_(data)

    def sync(self) -> None:
        """The interpreter orders stores of its threads."""

    def close(self) -> None:
        """Forget the shared tensors."""
        self._shared.drop(self._key)


class ThreadGroup:
    """One rank of a group of threads; what a buffer is built on.

    Args:
        shared: made once for all threads.
        rank: of this thread.
        scaleup_ranks: consecutive ranks of one scale-up domain; all if None.
    """

    backend = "threads"

    def __init__(self, shared: Shared, rank: int, scaleup_ranks: int | None = None) -> None:
        self.rank, self.size = rank, shared.size
        self.scaleup_ranks = scaleup_ranks or shared.size
        self._shared = shared
        self._made: dict[tuple[int, ...], int] = {}

    def connect(
        self,
        num_bytes: int,
        capacity: int,
        timeout_s: float,
        ranks: Sequence[int] | None = None,
    ) -> Transport:
        """A transport over ``ranks`` (all by default)."""
        members = tuple(range(self.size)) if ranks is None else tuple(ranks)
        turn = self._made[members] = self._made.get(members, 0) + 1
        rank, size = members.index(self.rank), len(members)
        inbox = ThreadMemory(
            self._shared, (members, turn, "board"), rank, size, size * slot_bytes(capacity)
        )
        rows = ThreadMemory(self._shared, (members, turn, "data"), rank, size, num_bytes)

        def splitter(some: Sequence[int], bytes_: int) -> Transport:
            return self.connect(bytes_, capacity, timeout_s, [members[r] for r in some])

        board = Board(inbox, capacity, timeout_s)
        return OneSided(rows, board, self.backend, splitter, (rows, inbox))


def run(size: int, work: Callable[[ThreadGroup], T], scaleup_ranks: int | None = None) -> list[T]:
    """Results of ``work(group)`` by rank; the first exception of a rank is raised."""
    shared = Shared(size)
    results: list[Any] = [None] * size
    errors: list[BaseException | None] = [None] * size

    def one(rank: int) -> None:
        try:
            results[rank] = work(ThreadGroup(shared, rank, scaleup_ranks))
        except BaseException as e:
            errors[rank] = e

    threads = [threading.Thread(target=one, args=(r,), daemon=True) for r in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for e in errors:
        if e is not None:
            raise e
    return results
