"""MPI windows: shared memory stands for the scale-up fabric, put and flush for the network.

Ranks of one scale-up domain map each other's part of a window (``Shared_query``); all others are
reached by ``Put`` and ``Flush`` on the same window. No call on the data path waits for
a peer inside MPI, so a peer that died is found by a deadline and not by a hang.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm.transport.base import Transport
from ep_comm.transport.board import Board, slot_bytes
from ep_comm.transport.onesided import OneSided

if TYPE_CHECKING:
    import torch


class MPIMemory:
    """One-sided memory over a communicator.

    Args:
        comm: all ranks.
        num_bytes: a rank.
        domain: number of this rank's scale-up domain; equal numbers share a host.
        zeroed: cleared first. Memory for rows is not: its pages would all be touched.
    """

    def __init__(self, comm: Any, num_bytes: int, domain: int, zeroed: bool = False) -> None:
        import torch
        from mpi4py import MPI

        self.rank, self.size, self.num_bytes = comm.rank, comm.size, num_bytes
        self._comm, self._peers = comm, {}
        # One byte at least: an empty segment has no address to map.
        self._window = MPI.Win.Allocate(max(num_bytes, 1), 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        for rank, theirs in enumerate(comm.allgather(domain)):
            if theirs == domain:
                place = self._window.tomemory() if rank == self.rank else self._mapped(rank)
                if len(place):
                    self._peers[rank] = torch.frombuffer(place, dtype=torch.uint8)[:num_bytes]
        self.local: torch.Tensor = self._peers[self.rank]
        if zeroed:
            self.local.zero_()
        self._window.Sync()
        comm.Barrier()

    def _mapped(self, rank: int) -> Any:
        """A peer's segment, or nothing where the library does not map it (put serves then)."""
        from mpi4py import MPI

        try:
            return self._window.Shared_query(rank)[0]
        except MPI.Exception:
            return b""

    def peer(self, rank: int) -> torch.Tensor | None:
        """Bytes of a rank of the same domain."""
        return self._peers.get(rank)

    def put(self, rank: int, offset: int, data: torch.Tensor) -> None:
        """A store in the domain, else ``Put`` and ``Flush``."""
        near = self._peers.get(rank)
        if near is not None:
            near[offset : offset + len(data)].copy_(data)
            return
        self._window.Put(data.numpy(), rank, offset)
        self._window.Flush(rank)

    def sync(self) -> None:
        """A memory barrier."""
        self._window.Sync()

    def close(self) -> None:
        """Collective."""
        self._peers.clear()
        del self.local
        self._window.Unlock_all()
        self._window.Free()
        self._comm = None


def outlive_notices() -> None:
    """Ignore the launcher's notice that another rank died; by default it ends the process.

    MPICH's process manager, told not to clean up, sends SIGUSR1 to the ranks that are left.
    """
    main = threading.current_thread() is threading.main_thread()
    # None is a handler the library installed; only one written in Python is left alone.
    if main and not callable(signal.getsignal(signal.SIGUSR1)):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def unlink_segments() -> None:
    """Take the library's shared-memory files out of the file system; mappings stay.

    A rank that is killed cannot clean up. What has no name when it dies is freed with it.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        name = line.split()[-1]
        if name.startswith("/dev/shm/mpich_shm_"):
            Path(name).unlink(missing_ok=True)


class MPIGroup:
    """One rank of a communicator; what a buffer is built on.

    Args:
        comm: an mpi4py communicator; it is duplicated.
        scaleup_ranks: ranks of one scale-up domain, consecutive; None asks the machine (ranks that
            can share memory). Fewer than that emulates several nodes on one host.
    """

    backend = "mpi"

    def __init__(self, comm: Any = None, scaleup_ranks: int | None = None) -> None:
        from mpi4py import MPI

        outlive_notices()
        self._comm = (MPI.COMM_WORLD if comm is None else comm).Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        host = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        most = self._comm.allreduce(host.size, MPI.MIN)
        # Everyone on this host has mapped everything once the reduction above is through.
        if host.rank == 0 and os.path.exists("/proc/self/maps"):
            unlink_segments()
        host.Free()
        self.scaleup_ranks = most if scaleup_ranks is None else scaleup_ranks
        if self.size % self.scaleup_ranks or self.scaleup_ranks > most:
            raise bad_value(
                "scaleup_ranks", scaleup_ranks, f"a divisor of {self.size}, at most {most}", most
            )

    def connect(
        self,
        num_bytes: int,
        capacity: int,
        timeout_s: float,
        ranks: Sequence[int] | None = None,
    ) -> Transport:
        """A transport over ``ranks`` (all by default); collective among them."""
        members = list(range(self.size)) if ranks is None else list(ranks)
        group = self._comm.Get_group().Incl(members)
        comm = self._comm.Create_group(group)
        domain = self.rank // self.scaleup_ranks
        inbox = MPIMemory(comm, len(members) * slot_bytes(capacity), domain, True)
        rows = MPIMemory(comm, num_bytes, domain)

        def splitter(some: Sequence[int], bytes_: int) -> Transport:
            return self.connect(bytes_, capacity, timeout_s, [members[r] for r in some])

        return OneSided(rows, Board(inbox, capacity, timeout_s), "mpi", splitter, (rows, inbox))
