"""Rows written by the sender straight into the receiver's memory, then one round to say so.

Scale-up peers are reached by stores (a shared window, symmetric memory), others by put. A row is
gathered and written in one pass where stores reach; a put goes through a staging copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ep_comm.transport.base import Memory, Transport, as_bytes, of_bytes, offsets
from ep_comm.transport.board import Board

if TYPE_CHECKING:
    import numpy as np
    import torch

Splitter = Callable[[Sequence[int], int], Transport]


class OneSided:
    """A :class:`Transport` over one-sided memory.

    Args:
        data: memory that rows arrive in.
        board: where ranks meet.
        backend: for messages.
        splitter: makes the transport of a subgroup.
        release: what to close after the board, in order.
    """

    owned = False
    bounded = True
    queued = False

    def __init__(
        self,
        data: Memory,
        board: Board,
        backend: str,
        splitter: Splitter,
        release: Sequence[Memory],
    ) -> None:
        self.rank, self.size, self.backend = data.rank, data.size, backend
        self._data, self._board, self._splitter = data, board, splitter
        self._release = tuple(release)
        self.waited: list[float] | None = [0.0] * self.size

    @property
    def num_bytes(self) -> int:
        """Capacity of the memory rows arrive in."""
        return self._data.num_bytes

    def gather(self, blob: bytes, what: str) -> list[bytes]:
        """See :class:`Transport`."""
        return self._board.gather(blob, what)

    def exchange(
        self,
        planes: Sequence[torch.Tensor],
        take: torch.Tensor | None,
        counts: np.ndarray,
        what: str,
    ) -> list[torch.Tensor]:
        """See :class:`Transport`."""
        widths = self.write_rows(planes, take, counts)
        self._data.sync()
        self._board.gather(b"", f"{what} arrival")
        self.waited = list(self._board.waits)
        self._data.sync()
        rows = int(counts[:, self.rank].sum())
        begins, _ = offsets(rows, widths)
        return [
            of_bytes(self._data.local[b : b + rows * w].view(rows, w), p)
            for p, b, w in zip(planes, begins, widths)
        ]

    def write_rows(
        self, planes: Sequence[torch.Tensor], take: torch.Tensor | None, counts: np.ndarray
    ) -> list[int]:
        """The copies of :meth:`exchange`, without waiting for anyone; returns bytes of each row."""
        sources = [as_bytes(p) for p in planes]
        widths = [s.shape[1] for s in sources]
        self._check_capacity(counts, widths)
        first = counts[self.rank].cumsum() - counts[self.rank]
        for step in range(self.size):
            to = (self.rank + step) % self.size
            count = int(counts[self.rank, to])
            if count:
                begins, _ = offsets(int(counts[:, to].sum()), widths)
                row = int(counts[: self.rank, to].sum())
                here = slice(int(first[to]), int(first[to]) + count)
                for source, begin, width in zip(sources, begins, widths):
                    rows, mine = (source[here], None) if take is None else (source, take[here])
                    self._write(to, begin + row * width, rows, mine)
        return widths

    def split(self, ranks: Sequence[int], num_bytes: int) -> Transport:
        """See :class:`Transport`."""
        return self._splitter(ranks, num_bytes)

    def fail(self, text: str) -> None:
        """See :class:`Transport`."""
        self._board.fail(text)

    def close(self) -> None:
        """See :class:`Transport`."""
        self._board.close()
        for memory in self._release:
            memory.close()

    def _write(self, to: int, at: int, source: torch.Tensor, take: torch.Tensor | None) -> None:
        import torch

        width, count = source.shape[1], len(source if take is None else take)
        if not width:
            return
        theirs = self._data.local if to == self.rank else self._data.peer(to)
        if theirs is None:
            data = source if take is None else source.index_select(0, take)
            self._data.put(to, at, data.view(-1))
            return
        place = theirs[at : at + count * width].view(count, width)
        if take is None:
            place.copy_(source)
        else:
            torch.index_select(source, 0, take, out=place)

    def _check_capacity(self, counts: np.ndarray, widths: Sequence[int]) -> None:
        # From the count matrix alone, so that every rank says the same.
        need = [offsets(int(rows), widths)[1] for rows in counts.sum(axis=0)]
        worst = max(range(self.size), key=lambda r: need[r])
        if need[worst] > self._data.num_bytes:
            raise ValueError(
                f"EPBuffer: rank {worst} receives {need[worst]} bytes, wanted <= "
                f"{self._data.num_bytes} (num_bytes of the buffer)"
            )
