"""One hop: rows from this rank to a group of peers, and back.

Direct mode is one hop over all ranks. Hybrid mode is two: to the node of the expert over the
network (same place in the node, one copy a node), then to its rank inside the node. A table gives,
for every choice of a token, the row that comes back for it, or -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ep_comm.layout import layout, unpack

if TYPE_CHECKING:
    import torch

    from ep_comm.transport.base import Transport


def last_on_rank(rank: torch.Tensor) -> torch.Tensor:
    """Mask of choices after which the token makes no other with the same number, -1 aside."""
    last = rank >= 0
    for j in range(rank.shape[1] - 1):
        last[:, j] &= (rank[:, j + 1 :] != rank[:, j : j + 1]).all(dim=1)
    return last


class Hop:
    """Where rows of one call go.

    Args:
        transport: the group.
        topk_idx: int64 [t, k] choices among the experts of this group, -1 elsewhere.
        num_experts: held by the group.
        order: tokens in the order in which they are sent; as they are if None.
    """

    def __init__(
        self,
        transport: Transport,
        topk_idx: torch.Tensor,
        num_experts: int,
        order: torch.Tensor | None = None,
    ) -> None:
        import torch

        self.transport = transport
        self.device = topk_idx.device
        if order is not None:
            order = order.to(self.device)
        ordered = topk_idx if order is None else topk_idx[order]
        flat = layout(ordered.contiguous(), num_experts, transport.size)
        made = unpack(flat, topk_idx, num_experts, transport.size)
        slot = made.slot.long()
        if order is not None:
            slot = torch.empty_like(slot).index_copy_(0, order, slot)
        share = num_experts // transport.size
        self.group = torch.where(topk_idx >= 0, topk_idx // share, -1)
        self.sends = made.num_tokens_per_rank.cpu().numpy().astype(np.int64)
        self.slot = slot
        token, choice = (slot >= 0).nonzero(as_tuple=True)
        to = self.group[token, choice]
        row = self._first(self.sends)[to] + slot[token, choice]
        self.take = torch.empty_like(token).index_copy_(0, row, token)
        self.target = torch.empty_like(to).index_copy_(0, row, to)
        self.table = torch.full_like(slot, -1)
        self.table[token, choice] = row
        self.counts = np.zeros((0, 0), np.int64)

    def agree(self, what: str) -> None:
        """Learn the whole count matrix."""
        self.counts = self._matrix(self.sends, f"{what} counts")

    @property
    def received(self) -> int:
        """Rows this rank receives."""
        return int(self.counts[:, self.transport.rank].sum())

    def forward(self, planes: Sequence[torch.Tensor], what: str) -> list[torch.Tensor]:
        """Rows to their ranks; what arrives is ordered by source."""
        return self.transport.exchange(planes, self.take, self.counts, what)

    def back(self, planes: Sequence[torch.Tensor], what: str) -> list[torch.Tensor]:
        """A row for every row received, back to its source; rows of :attr:`table`."""
        import torch

        every = torch.arange(self.received, device=self.device)
        return self.transport.exchange(planes, every, self.counts.T.copy(), what)

    def back_each(
        self,
        planes: Sequence[torch.Tensor],
        returned: torch.Tensor,
        theirs: torch.Tensor,
        what: str,
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Several rows a token, unreduced: one for every choice in a mask.

        Args:
            planes: a row for every True of ``theirs``, row-major.
            returned: mask [t, k] of this rank's choices for which a row comes back.
            theirs: mask [R, k], the same of the rows received.

        Returns:
            the planes, and the table of ``returned``.
        """
        import torch

        rank = self.transport.rank
        picked = returned[self.take] & (self.group[self.take] == self.target[:, None])
        line, choice = picked.nonzero(as_tuple=True)
        table = torch.full_like(self.table, -1)
        table[self.take[line], choice] = torch.arange(len(line), device=self.device)
        here = self.target[line].bincount(minlength=self.transport.size)
        counts = self._matrix(here.cpu().numpy(), f"{what} choices").T.copy()
        every = torch.arange(int(counts[rank].sum()), device=self.device)
        if len(every) != int(theirs.sum()):
            raise RuntimeError(f"{what}: {len(every)} rows are awaited, {int(theirs.sum())} exist")
        return self.transport.exchange(planes, every, counts, what), table

    def _first(self, counts: np.ndarray) -> torch.Tensor:
        import torch

        return torch.from_numpy(counts.cumsum() - counts).to(self.device)

    def _matrix(self, row: np.ndarray, what: str) -> np.ndarray:
        rows = self.transport.gather(row.astype(np.int32).tobytes(), what)
        return np.stack([np.frombuffer(r, np.int32) for r in rows]).astype(np.int64)
