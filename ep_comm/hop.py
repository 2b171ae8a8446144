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
        capacity: rows every rank sends to every rank, padding included; the host then needs no
            counts. None: as many as there are, which :meth:`agree` tells.
    """

    def __init__(
        self,
        transport: Transport,
        topk_idx: torch.Tensor,
        num_experts: int,
        order: torch.Tensor | None = None,
        capacity: int | None = None,
    ) -> None:
        import torch

        self.transport = transport
        self.device = topk_idx.device
        if order is not None:
            order = order.to(self.device)
        ordered = topk_idx if order is None else topk_idx[order]
        ranks = transport.size
        flat = layout(ordered.contiguous(), num_experts, ranks)
        self._head = flat[: ranks + num_experts]
        made = unpack(flat, topk_idx, num_experts, ranks)
        slot = made.slot.long()
        if order is not None:
            slot = torch.empty_like(slot).index_copy_(0, order, slot)
        self.slot = slot
        self._share = num_experts // ranks
        self.group = torch.where(topk_idx >= 0, topk_idx // self._share, -1)
        self.sends = made.num_tokens_per_rank
        if capacity is None:
            sends = self.sends.long()
            first = sends.cumsum(0) - sends
        else:
            first = torch.arange(ranks, device=self.device) * capacity
        real = slot >= 0
        self.table = torch.where(real, first[self.group.clamp(min=0)] + slot, -1)
        # Rows are not counted on the host yet: entries of no row go to one place beyond the most.
        t, k = topk_idx.shape
        most = t * min(k, ranks) if capacity is None else ranks * capacity
        tokens = torch.arange(t, device=self.device)[:, None].expand(t, k)
        self.take = torch.zeros(most + 1, dtype=torch.int64, device=self.device).scatter_(
            0, torch.where(real, self.table, most).view(-1), tokens.reshape(-1)
        )
        self.counts = np.full((ranks, ranks), capacity or 0, np.int64)
        self.padded = capacity is not None
        if self.padded:
            self.take = self.take[:most]

    def senders(self, what: str) -> torch.Tensor:
        """int32 [N] on the device: rows each rank sends here that are no padding."""
        ones = np.ones_like(self.counts)
        return self.transport.exchange([self.sends[:, None]], None, ones, what)[0][:, 0].clone()

    def agree(self, what: str) -> None:
        """Learn the count matrix and what every expert here receives; the one wait of a hop."""
        ranks, me = self.transport.size, self.transport.rank
        known = self._matrix(self._head.cpu().numpy(), f"{what} counts")
        self.counts = known[:, :ranks]
        own = slice(ranks + me * self._share, ranks + (me + 1) * self._share)
        self.expert_counts = known[:, own].sum(axis=0)
        self.take = self.take[: int(self.counts[me].sum())]

    @property
    def received(self) -> int:
        """Rows this rank receives."""
        return int(self.counts[:, self.transport.rank].sum())

    def forward(self, planes: Sequence[torch.Tensor], what: str) -> list[torch.Tensor]:
        """Rows to their ranks; what arrives is ordered by source."""
        if self.padded and not len(planes[0]):
            planes = [p.new_zeros((1, p.shape[1])) for p in planes]
        return self.transport.exchange(planes, self.take, self.counts, what)

    def back(self, planes: Sequence[torch.Tensor], what: str) -> list[torch.Tensor]:
        """A row for every row received, back to its source; rows of :attr:`table`."""
        return self.transport.exchange(planes, None, self.counts.T, what)

    def back_each(
        self,
        planes: Sequence[torch.Tensor],
        returned: torch.Tensor,
        what: str,
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Several rows a token, unreduced: one for every choice in a mask.

        Args:
            planes: a row for every choice that peers await, by row received and choice.
            returned: mask [t, k] of this rank's choices for which a row comes back.

        Returns:
            the planes, and the table of ``returned``.
        """
        import torch

        rank = self.transport.rank
        peers = torch.arange(self.transport.size, device=self.device)
        sends = torch.from_numpy(self.counts[rank].copy()).to(self.device)
        target = peers.repeat_interleave(sends, output_size=len(self.take))
        picked = returned[self.take] & (self.group[self.take] == target[:, None])
        line, choice = picked.nonzero(as_tuple=True)
        table = torch.full_like(self.table, -1)
        table[self.take[line], choice] = torch.arange(len(line), device=self.device)
        here = target[line].bincount(minlength=self.transport.size)
        counts = self._matrix(here.cpu().numpy(), f"{what} choices").T.copy()
        awaited, exist = int(counts[rank].sum()), len(planes[0])
        if awaited != exist:
            raise RuntimeError(f"{what}: {awaited} rows are awaited, {exist} exist")
        return self.transport.exchange(planes, None, counts, what), table

    def _matrix(self, row: np.ndarray, what: str) -> np.ndarray:
        rows = self.transport.gather(row.astype(np.int32).tobytes(), what)
        return np.stack([np.frombuffer(r, np.int32) for r in rows]).astype(np.int64)
