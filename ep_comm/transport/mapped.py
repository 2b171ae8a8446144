"""Memory that the processes of one host map from a file system in memory: where they can meet.

A round of gloo and a note in the store cost most of a millisecond, a store into mapped memory and a
look at one's own cost microseconds. Files lose their names as soon as everyone has mapped them, so
nothing stays behind, whoever dies.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

FOLDER = Path("/dev/shm")
Gather = Callable[[bytes], list[bytes]]


class MappedMemory:
    """A :class:`ep_comm.transport.base.Memory` of one host; see :func:`mapped`."""

    def __init__(self, rank: int, parts: list[torch.Tensor]) -> None:
        self.rank, self.size, self.num_bytes = rank, len(parts), len(parts[rank])
        self._parts, self.local = parts, parts[rank]

    def peer(self, rank: int) -> torch.Tensor | None:
        """A peer's bytes."""
        return self._parts[rank]

    def put(self, rank: int, offset: int, data: torch.Tensor) -> None:
        """A store."""
        self._parts[rank][offset : offset + len(data)].copy_(data)

    def sync(self) -> None:
        """Stores of one x86 or Arm core to mapped memory; a copy ends with its stores issued."""

    def close(self) -> None:
        """Forget the mappings."""
        self._parts.clear()


def mapped(rank: int, num_bytes: int, gather: Gather) -> MappedMemory | None:
    """Zeroed memory of ``num_bytes`` a rank; None on all ranks where they share no host.

    Args:
        gather: blobs of all ranks, in rank order; collective.
    """
    name = FOLDER / f"ep_comm-{uuid.uuid4().hex}"
    mine = b""
    try:
        with name.open("xb") as f:
            os.posix_fallocate(f.fileno(), 0, num_bytes)
        mine = f"{_host()} {name}".encode()
    except OSError:
        pass
    try:
        told = [b.decode().partition(" ") for b in gather(mine)]
        parts = [_map(Path(path), num_bytes) for host, _, path in told if host == _host()]
        # Also the moment from which every file may lose its name.
        good = all(gather(b"y" if len(parts) == len(told) and None not in parts else b""))
    finally:
        name.unlink(missing_ok=True)
    return MappedMemory(rank, [p for p in parts if p is not None]) if good else None


def _host() -> str:
    """This boot of this machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _map(path: Path, num_bytes: int) -> torch.Tensor | None:
    import torch

    # Another container of this machine may have files of its own; mapping would make one.
    if not path.is_file():
        return None
    return torch.from_file(str(path), shared=True, size=num_bytes, dtype=torch.uint8)
