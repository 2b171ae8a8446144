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
        sizes: the same, rounded up to the alignment, on the host.
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
    sizes: list[int]

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.local)

    @property
    def num_out(self) -> int:
        """Rows of the outputs that mean something: R or X."""
        return self.num_rows if self.index is None else len(self.index)

    def worst(self, rows: int) -> int:
        """Rows of the outputs if ``rows`` arrived and every one took all the experts it can."""
        if self.expanded is None:
            return rows
        a, experts = self.alignment, len(self.counts)
        most = rows * min(self.local.shape[1], experts)
        return align(most + (a - 1) * experts, a)

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


def place(
    chosen: torch.Tensor,
    src: torch.Tensor,
    low: int,
    counts: np.ndarray,
    alignment: int,
    do_expand: bool,
    sort: bool,
    order: Order,
) -> Placement:
    """Decide where every arrival goes; nothing is read from the device.

    Args:
        chosen: int32 [R, k], global choices, in order of arrival.
        src: int32 [R].
        low: first expert of this rank.
        counts: rows of each expert of this rank.
        sort: by ``src`` instead of by arrival.
        order: in which arrivals take their rows within an expert, where they are not sorted.
    """
    import torch

    row = None
    if sort:
        row = src.argsort()
        chosen, src = chosen[row], src[row]
    local = chosen.long() - low
    local = torch.where((local >= 0) & (local < len(counts)), local, -1)
    padded = (counts + alignment - 1) // alignment * alignment
    both = torch.from_numpy(np.stack([counts, padded.cumsum() - padded])).to(local.device)
    expanded = index = None
    if do_expand:
        turn = None if sort else order(len(local))
        turn = None if turn is None else turn.to(local.device)
        expanded, index = _expanded(local, both[1], int(padded.sum()), turn, row)
    # A copy: without a sort these are numbers in the buffer, which the next call overwrites.
    return Placement(
        row, local, src.clone(), both[0], expanded, index, both[1], alignment, padded.tolist()
    )


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
