"""The two seams below a buffer: ``Transport`` moves rows, ``Memory`` is one-sided memory under it.

Every rank knows the whole count matrix of an exchange, so received segments lie dense, in the order
of their sources, and a sender knows where in the receiver's memory its rows begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import torch

ALIGN = 64
"""Bytes; every plane of a received record starts at a multiple of it."""


class Transport(Protocol):
    """A group of ranks that can gather small blobs and exchange rows."""

    rank: int
    size: int
    backend: str
    owned: bool
    """Whether received tensors belong to the caller; if not, the next exchange overwrites them."""
    bounded: bool
    """Whether rows arrive in memory of the buffer's size, and must fit."""
    queued: bool
    """Whether two exchanges may follow each other without a :meth:`gather` in between."""

    waited: list[float] | None
    """Seconds this rank waited for the rows of each rank in the last exchange; None where rows of
    all ranks arrive at once."""

    def gather(self, blob: bytes, what: str) -> list[bytes]:
        """``blob`` of every rank, in rank order. Raises PeerTimeout or PeerFailed."""
        ...

    def exchange(
        self,
        planes: Sequence[torch.Tensor],
        take: torch.Tensor | None,
        counts: np.ndarray,
        what: str,
    ) -> list[torch.Tensor]:
        """Send rows to every rank; returns what arrived, one tensor a plane, by source.

        Args:
            planes: tensors ``[rows, width]`` with the same rows.
            take: int64, rows to send, by destination and within it in the order of arrival; None
                for all rows as they stand.
            counts: ``[size, size]``, rows from rank i to rank j; the same on every rank.
            what: names the call where a peer is missed.
        """
        ...

    def split(self, ranks: Sequence[int], num_bytes: int) -> Transport:
        """A transport over some ranks of this one; every member calls it with the same ranks."""
        ...

    def fail(self, text: str) -> None:
        """Tell peers that this rank leaves the call; they raise PeerFailed with ``text``."""
        ...

    def close(self) -> None:
        """Give memory back. Not collective where peers may be gone."""
        ...


class Memory(Protocol):
    """The same number of bytes on every rank, writable by its peers."""

    rank: int
    size: int
    num_bytes: int
    local: torch.Tensor
    """uint8, this rank's bytes."""

    def peer(self, rank: int) -> torch.Tensor | None:
        """A peer's bytes where loads and stores reach them, else None."""
        ...

    def put(self, rank: int, offset: int, data: torch.Tensor) -> None:
        """Write uint8 bytes to a peer; visible to it after its next :meth:`sync`."""
        ...

    def sync(self) -> None:
        """Order what was put before and what is read after."""
        ...

    def close(self) -> None:
        """Release the memory."""
        ...


def offsets(rows: int, widths: Sequence[int]) -> tuple[list[int], int]:
    """Where planes of ``rows`` rows begin in a receiver's memory, and the bytes they take."""
    at, begins = 0, []
    for width in widths:
        begins.append(at)
        at += -(-rows * width // ALIGN) * ALIGN
    return begins, at


def as_bytes(plane: torch.Tensor) -> torch.Tensor:
    """``[rows, width]`` of any dtype as uint8 ``[rows, bytes]``, same memory where contiguous."""
    import torch

    flat = plane.contiguous()
    if flat.shape[-1] == 1:
        # One column counts as contiguous whatever its stride, and cannot be seen as bytes then.
        flat = torch.empty_strided(flat.shape, (1, 1), dtype=flat.dtype, device=flat.device).copy_(
            flat
        )
    if flat.numel() == 0:
        return flat.new_empty(
            (flat.shape[0], flat.shape[1] * flat.element_size()), dtype=torch.uint8
        )
    return flat.view(torch.uint8)


def of_bytes(data: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Bytes ``[rows, bytes]`` as the dtype of ``like``."""
    if data.numel() == 0:
        return like.new_empty((data.shape[0], like.shape[1]))
    return data.view(like.dtype)


def nothing(*_: Any) -> None:
    """A close that has nothing to do."""
