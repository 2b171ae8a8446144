"""The hops of one call: one in direct mode, two in hybrid mode, and the sums on the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ep_comm.hop import Hop, last_on_rank
from ep_comm.reduce import reduce

if TYPE_CHECKING:
    import torch

    from ep_comm.transport.base import Transport

Order = Callable[[int], "torch.Tensor | None"]
"""Gives the order in which n tokens are sent; None leaves them as they are."""


@dataclass(frozen=True)
class Grid:
    """The transports of a buffer and this rank's place: rank = node * SU + place in the node.

    Args:
        whole: all ranks.
        rail: ranks at the same place of every node; None in direct mode.
        node: ranks of this node; None in direct mode.
    """

    whole: Transport
    rail: Transport | None = None
    node: Transport | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(scale-out, scale-up) ranks."""
        if self.rail is None or self.node is None:
            return 1, self.whole.size
        return self.rail.size, self.node.size

    @property
    def owned(self) -> bool:
        """Whether rows that arrived belong to the caller."""
        return self.whole.owned

    def all(self) -> list[Transport]:
        """Every transport, the widest last."""
        return [t for t in (self.rail, self.node, self.whole) if t is not None]


@dataclass
class Returned:
    """Rows that came back to their source, not yet summed.

    Args:
        rows: bf16.
        table: for every choice the row to add, or -1.
        weights: f32 [rows, k] or None; for every choice, its column of the row of its rank.
        owner: int64 [t, k], who sent the row of a choice.
    """

    rows: torch.Tensor
    table: torch.Tensor
    weights: torch.Tensor | None
    owner: torch.Tensor

    def merged(self) -> torch.Tensor | None:
        """Weights by choice, [t, k]: each from the row its rank sent; 0 for no choice."""
        if self.weights is None:
            return None
        import torch

        if not len(self.weights):
            return self.weights.new_zeros(self.table.shape)
        # The row of a choice is the one its owner sent, kept at the owner's last choice.
        same = self.owner[:, :, None] == self.owner[:, None, :]
        row = torch.where(same, self.table[:, None, :], -1).amax(dim=2)
        choice = torch.arange(row.shape[1], device=row.device)
        return torch.where(row >= 0, self.weights[row.clamp(min=0), choice], 0.0)

    def summed(self, bias: Sequence[torch.Tensor | None] = ()) -> torch.Tensor:
        """bf16 [t, H]."""
        import torch

        return reduce(self.rows.contiguous(), self.table.to(torch.int32), *bias)


class Path:
    """Hops from tokens to experts, made by one dispatch and used by all that share its handle.

    Args:
        grid: transports.
        topk_idx: int64 [t, k], global.
        num_experts: E.
        what: the call, for messages.
    """

    def __init__(self, grid: Grid, topk_idx: torch.Tensor, num_experts: int, what: str) -> None:
        self._grid, self._topk_idx, self._experts, self._what = grid, topk_idx, num_experts, what
        self.hops: list[Hop] = []
        self._chosen: list[torch.Tensor] = []

    def open_padded(
        self, planes: list[torch.Tensor], order: Order, capacity: int
    ) -> list[torch.Tensor]:
        """The first forward without a look at counts, in direct mode: ``capacity`` rows from every
        rank, of which :attr:`senders` are real."""
        whole, chosen = self._grid.whole, self._topk_idx
        hop = Hop(whole, chosen, self._experts, order(len(chosen)), capacity)
        self.hops.append(hop)
        self._chosen.append(chosen)
        # Before the rows: what arrives in a buffer lasts until the next exchange.
        self.senders = hop.senders(f"{self._what} counts")
        return hop.forward(planes, self._what)

    def open(self, planes: list[torch.Tensor], order: Order) -> list[torch.Tensor]:
        """The first forward; learns the hops. The last plane is int32, its first k columns the
        global choices."""
        import torch

        first = self._grid.rail or self._grid.whole
        rows = self._hop(first, self._topk_idx, self._experts, planes, order)
        if self._grid.rail is None or self._grid.node is None:
            return rows
        share = self._experts // self._grid.rail.size
        low = self._grid.rail.rank * share
        chosen = rows[-1][:, : self._topk_idx.shape[1]].long()
        inside = torch.where((chosen >= low) & (chosen < low + share), chosen - low, -1)
        return self._hop(self._grid.node, inside, share, rows, order)

    def forward(self, planes: list[torch.Tensor], what: str) -> list[torch.Tensor]:
        """The same rows the same way: cached mode."""
        for hop in self.hops:
            planes = hop.forward(planes, what)
        return planes

    def numbered(self, source: torch.Tensor) -> torch.Tensor:
        """Of received rows the source rank; in hybrid mode its number within its scale-up peer.

        Args:
            source: int64 [R], source rank of every row.
        """
        import torch

        if self._grid.node is None:
            return source
        near = self._grid.node.size
        place = source % near
        order = place.argsort(stable=True)
        counts = place.bincount(minlength=near)
        first = counts.cumsum(0) - counts
        number = torch.empty_like(place)
        number[order] = torch.arange(len(place), device=place.device) - first[place[order]]
        return number

    def back(
        self,
        rows: torch.Tensor,
        weights: torch.Tensor | None,
        multiple: bool,
        a_choice: bool,
        what: str,
    ) -> Returned:
        """Rows from experts to tokens, all but the last sum.

        Args:
            rows: bf16, in order of arrival: one a row received, or one for every choice here.
            weights: f32, a row for each of ``rows``.
            multiple: sum on the way where rows of a token meet.
            a_choice: without ``multiple``: rows are one a choice, not one a rank.
        """
        for i in reversed(range(len(self.hops))):
            hop, last = self.hops[i], i == 0
            planes = [rows] if weights is None else [rows, weights]
            if multiple:
                planes = hop.back(planes, what)
                table, by = hop.table, hop.group
            else:
                by = self._rank_of(i)
                each = by >= 0 if a_choice else last_on_rank(by)
                planes, table = hop.back_each(planes, each, what)
            got = Returned(planes[0], table, planes[1] if weights is not None else None, by)
            if last:
                return got
            if multiple:
                rows, weights = got.summed(), got.merged()
            else:
                every = table[each]
                rows = planes[0][every]
                weights = None if weights is None else planes[1][every]
        raise RuntimeError("a path without hops")

    def _hop(
        self,
        transport: Transport,
        chosen: torch.Tensor,
        experts: int,
        planes: list[torch.Tensor],
        order: Order,
    ) -> list[torch.Tensor]:
        hop = Hop(transport, chosen, experts, order(len(chosen)))
        hop.agree(self._what)
        self.hops.append(hop)
        self._chosen.append(chosen)
        return hop.forward(planes, self._what)

    def _rank_of(self, i: int) -> torch.Tensor:
        """Rank of every choice at the source of hop i, -1 for none."""
        import torch

        chosen = self._chosen[i]
        return torch.where(chosen >= 0, chosen // (self._experts // self._grid.whole.size), -1)
