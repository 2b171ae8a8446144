"""The epilogue of dispatch: which arrival stands where in the outputs, and the copies.

Rows arrive by source, in the order in which their sender numbered them. Deterministic mode sorts
them by ``src_token_global_idx``; the expanded layout groups them by expert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ep_comm.expand import expand
from ep_comm.layout import layout, unpack
from ep_comm.path import Order
from ep_comm.size import align

if TYPE_CHECKING:
    import torch

SF_ALIGN = 4
"""Rows of column-major scales are padded to a multiple of it (16 bytes)."""


@dataclass
class Placement:
    """Where rows go; learned from the first dispatch, kept in the handle.

    Args:
        row: int64 [R], arrival behind each received row; None where it is the row itself.
        local: int64 [R, k], local experts of received rows, -1 elsewhere.
        src: int32 [R], source rank * T + token.
        counts: int64 [E/N], rows of each expert.
        sizes: the same, rounded up to the alignment, on the host; None where it knows no counts,
            and rows beyond the real ones are padding.
        expanded: int64 [R, k], expanded row of each choice or -1; None where not expanded.
        index: int32, arrival behind each expanded row, -1 in gaps.
        starts: int64 [E/N], first row of each expert.
        alignment: of those starts.
    """

    row: torch.Tensor | None
    local: torch.Tensor
    src: torch.Tensor
    counts: torch.Tensor
    expanded: torch.Tensor | None
    index: torch.Tensor | None
    starts: torch.Tensor
    alignment: int
    sizes: list[int] | None

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.local)

    @property
    def num_out(self) -> int:
        """Rows of the outputs that mean something: R or X."""
        return self.num_rows if self.index is None else len(self.index)

    @property
    def num_real(self) -> int:
        """Rows of the outputs before any padding; waits for the device where it alone knows."""
        if self.sizes is not None:
            return self.num_out
        if self.index is None:
            return int((self.local >= 0).any(dim=1).sum())
        return (
            int(self.starts[-1] + self.counts[-1] + self.alignment - 1)
            // self.alignment
            * (self.alignment)
        )

    def worst(self, rows: int) -> int:
        """Rows of the outputs if ``rows`` arrived and every one took all the experts it can."""
        if self.expanded is None:
            return rows
        return _worst(rows, self.local.shape[1], len(self.counts), self.alignment)

    def x(self, rows: torch.Tensor, size: int, keep: bool) -> torch.Tensor:
        """Token rows at their places, in a tensor of ``size`` rows.

        Args:
            keep: ``rows`` may itself be the result.
        """
        import torch

        if self.index is None and self.row is None:
            if keep and size == len(rows):
                return rows
            out = rows.new_empty((size, rows.shape[1]))
            out[: len(rows)].copy_(rows)
            return out
        index = self.index
        if index is None and self.row is not None:
            index = self.row.to(torch.int32)
        out = rows.new_empty((size, rows.shape[1]))
        if len(out):
            expand(rows, index, out=out[: self.num_out])
        return out

    def sf(self, rows: torch.Tensor, size: int, column_major: bool) -> torch.Tensor:
        """Scales at their places; column-major has strides (1, rows rounded up to 4)."""
        import torch

        packs = rows.shape[1]
        stride = (1, align(size, SF_ALIGN)) if column_major else (packs, 1)
        out = torch.empty_strided((size, packs), stride, dtype=rows.dtype, device=rows.device)
        out[: self.num_out] = self._picked(rows)
        return out

    def weights(self, rows: torch.Tensor, size: int) -> torch.Tensor:
        """[R, k], or [X] in the expanded layout; 0 in gaps."""
        ordered = rows if self.row is None else rows[self.row]
        if self.expanded is None:
            out = rows.new_empty((size, rows.shape[1]))
            out[: len(ordered)] = ordered
            return out
        # Entries of no row go to one place beyond the last.
        import torch

        out = rows.new_zeros(size + 1)
        places = torch.where(self.expanded >= 0, self.expanded, size)
        return out.scatter_(0, places.view(-1), ordered.reshape(-1))[:size]

    def arrivals(self, of_rows: torch.Tensor) -> torch.Tensor:
        """Back from received rows to order of arrival."""
        import torch

        if self.row is None:
            return of_rows
        return torch.empty_like(of_rows).index_copy_(0, self.row, of_rows)

    def _picked(self, rows: torch.Tensor) -> torch.Tensor:
        if self.index is None:
            return rows if self.row is None else rows[self.row]
        import torch

        if not len(rows):
            return rows.new_zeros((len(self.index), rows.shape[1]))
        # A choice by mask, not a product: scales are bit patterns, also where they are floats.
        real = self.index >= 0
        return torch.where(real[:, None], rows[self.index.clamp(min=0).long()], 0)


def _worst(rows: int, num_topk: int, experts: int, alignment: int) -> int:
    return align(rows * min(num_topk, experts) + (alignment - 1) * experts, alignment)


def place(
    chosen: torch.Tensor,
    src: torch.Tensor,
    low: int,
    num_local: int,
    counts: np.ndarray | None,
    alignment: int,
    do_expand: bool,
    row: torch.Tensor | None,
    order: Order | None,
) -> Placement:
    """Decide where every arrival goes; nothing is read from the device.

    Args:
        chosen: int32 [R, k], global choices, in order of arrival; -1 in padding.
        src: int32 [R].
        low, num_local: first expert of this rank, and how many.
        counts: rows of each, where the host knows them.
        row: arrival behind each row; None for the order of arrival.
        order: in which arrivals take their rows within an expert; None for that of rows.
    """
    import torch

    if row is not None:
        chosen, src = chosen[row], src[row]
    local = chosen.long() - low
    local = torch.where((local >= 0) & (local < num_local), local, -1)
    sizes = None
    if counts is None:
        places = torch.where(local >= 0, local, num_local).view(-1)
        counted = local.new_zeros(num_local + 1).scatter_add_(0, places, torch.ones_like(places))
        counted = counted[:num_local]
        padded = (counted + alignment - 1) // alignment * alignment
        starts = padded.cumsum(0) - padded
        size = _worst(len(local), local.shape[1], num_local, alignment)
    else:
        aligned = (counts + alignment - 1) // alignment * alignment
        both = np.stack([counts, aligned.cumsum() - aligned])
        counted, starts = torch.from_numpy(both).to(local.device)
        sizes, size = aligned.tolist(), int(aligned.sum())
    expanded = index = None
    if do_expand:
        turn = None if order is None else order(len(local))
        turn = None if turn is None else turn.to(local.device)
        expanded, index = _expanded(local, starts, size, turn, row)
    # A copy: without a sort these are numbers in the buffer, which the next call overwrites.
    return Placement(row, local, src.clone(), counted, expanded, index, starts, alignment, sizes)


def compacted(senders: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of ``capacity`` arrivals a source, the first ``senders`` of each real: (mask of the real
    ones, arrival behind each row, real ones first and by source)."""
    import torch

    counts = senders.long()[:, None]
    slot = torch.arange(capacity, device=senders.device)[None, :]
    real = slot < counts
    # Real rows before a source, and padding before it; both then grow by one a row.
    before = counts.cumsum(0) - counts
    source = torch.arange(len(counts), device=senders.device)[:, None]
    gaps = counts.sum() + source * capacity - before
    place = torch.where(real, before + slot, gaps + slot - counts).view(-1)
    arrivals = torch.arange(place.numel(), device=senders.device)
    return real.view(-1), torch.empty_like(place).scatter_(0, place, arrivals)


def _expanded(
    local: torch.Tensor,
    starts: torch.Tensor,
    size: int,
    turn: torch.Tensor | None,
    row: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    experts = len(starts)
    walked = local if turn is None else local[turn]
    # Experts of a token are distinct: as receivers of their own they number its choices.
    slot = unpack(layout(walked, experts, experts), walked, experts, experts).slot.long()
    place = torch.where(slot >= 0, slot + starts[walked.clamp(min=0)], -1)
    expanded = place if turn is None else torch.empty_like(place).index_copy_(0, turn, place)
    index = torch.full((size + 1,), -1, dtype=torch.int32, device=local.device)
    arrival = torch.arange(len(local), device=local.device) if row is None else row
    index.scatter_(
        0,
        torch.where(expanded >= 0, expanded, size).view(-1),
        arrival.to(torch.int32)[:, None].expand_as(expanded).reshape(-1),
    )
    return expanded, index[:size]
