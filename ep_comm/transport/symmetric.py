"""Symmetric memory of torch on NVIDIA GPUs: rows go by stores into the receiver's memory.

Counts and checks travel as in :class:`TorchTransport`; rows are gathered straight into the peers'
buffers on the current stream, between two barriers that run on the stream as well. The first waits
until every rank has read what the last exchange left, the second until all rows are there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ep_comm.expand import ALIGN, expand
from ep_comm.transport.base import Transport, as_bytes, of_bytes, offsets
from ep_comm.transport.torch_dist import TorchTransport

if TYPE_CHECKING:
    import numpy as np
    import torch


class SymmetricTransport(TorchTransport):
    """Rows by peer stores, the rest by process groups.

    Args:
        ranks, backend, capacity, timeout_s: see :class:`TorchTransport`.
        num_bytes: of the buffer rows arrive in.
    """

    owned = False
    bounded = True

    def __init__(
        self, ranks: Sequence[int], backend: str, capacity: int, timeout_s: float, num_bytes: int
    ) -> None:
        super().__init__(ranks, backend, capacity, timeout_s)
        # Multicast needs a fabric that shared hosts may not offer, and nothing here uses it.
        os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
        import torch
        from torch.distributed import _symmetric_memory as symmetric

        self._bytes = num_bytes
        if num_bytes:
            self._local = symmetric.empty(num_bytes, dtype=torch.uint8, device=self.device)
            self._shared: Any = symmetric.rendezvous(self._local, self._rows)
            self._peers = [
                self._shared.get_buffer(r, (num_bytes,), torch.uint8) for r in range(self.size)
            ]

    def exchange(
        self,
        planes: Sequence[torch.Tensor],
        take: torch.Tensor | None,
        counts: np.ndarray,
        what: str,
    ) -> list[torch.Tensor]:
        """See :class:`Transport`."""
        import torch

        sources = [as_bytes(p) for p in planes]
        widths = [s.shape[1] for s in sources]
        need = max(offsets(int(rows), widths)[1] for rows in counts.sum(axis=0))
        if need > self._bytes:
            raise ValueError(f"EPBuffer: {need} bytes arrive, wanted <= {self._bytes} (num_bytes)")
        self._shared.barrier()
        first = counts[self.rank].cumsum() - counts[self.rank]
        picked = None if take is None else take.to(torch.int32)
        for step in range(self.size):
            to = (self.rank + step) % self.size
            count = int(counts[self.rank, to])
            mine = slice(int(first[to]), int(first[to]) + count)
            begins, _ = offsets(int(counts[:, to].sum()), widths)
            row = int(counts[: self.rank, to].sum())
            for source, begin, width in zip(sources, begins, widths):
                if count and width:
                    at = begin + row * width
                    place = self._peers[to][at : at + count * width].view(count, width)
                    if picked is None:
                        place.copy_(source[mine])
                    elif width % ALIGN:
                        torch.index_select(source, 0, picked[mine], out=place)
                    else:
                        expand(source, picked[mine], out=place)
        self._shared.barrier()
        rows = int(counts[:, self.rank].sum())
        begins, _ = offsets(rows, widths)
        return [
            of_bytes(self._local[b : b + rows * w].view(rows, w), p)
            for p, b, w in zip(planes, begins, widths)
        ]

    def close(self) -> None:
        """Let go of the memory, and leave the groups."""
        if self._bytes:
            del self._peers, self._shared, self._local
        super().close()

    def split(self, ranks: Sequence[int], num_bytes: int) -> Transport:
        """See :class:`Transport`."""
        members = [self._ranks[r] for r in ranks]
        return SymmetricTransport(members, self.backend, self._capacity, self._timeout, num_bytes)
