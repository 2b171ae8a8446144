"""The epilogue of dispatch: which arrival stands where in the outputs, and the copies.

Rows arrive by source, in the order in which their sender numbered them. Deterministic mode sorts
them by ``src_token_global_idx``; the expanded layout groups them by expert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ep_comm.expand import expand
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

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.local)

    @property
    def num_out(self) -> int:
        """Rows of the outputs that mean something: R or X."""
        return self.num_rows if self.index is None else len(self.index)

    @property
    def aligned(self) -> torch.Tensor:
        """Rows of each expert, padded."""
        return (self.counts + self.alignment - 1) // self.alignment * self.alignment

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
        out = rows.new_empty(size)
        out[: self.num_out] = 0
        here = self.expanded >= 0
        out[self.expanded[here]] = ordered[here]
        return out

    def arrivals(self, of_rows: torch.Tensor) -> torch.Tensor:
        """Back from received rows to order of arrival."""
        import torch

        if self.row is None:
            return of_rows
        return torch.empty_like(of_rows).index_copy_(0, self.row, of_rows)

    def _picked(self, rows: torch.Tensor) -> torch.Tensor:
        if self.index is None:
            return rows if self.row is None else rows[self.row]
        out = rows.new_zeros((len(self.index), rows.shape[1]))
        real = self.index >= 0
        out[real] = rows[self.index[real].long()]
        return out


def place(
    chosen: torch.Tensor,
    src: torch.Tensor,
    low: int,
    num_local: int,
    alignment: int,
    do_expand: bool,
    sort: bool,
    order: Order,
) -> Placement:
    """Decide where every arrival goes.

    Args:
        chosen: int32 [R, k], global choices, in order of arrival.
        src: int32 [R].
        low, num_local: first expert of this rank, and how many.
        sort: by ``src`` instead of by arrival.
        order: in which arrivals take their rows within an expert, where they are not sorted.
    """
    import torch

    row = None
    if sort:
        row = src.argsort()
        chosen, src = chosen[row], src[row]
    wide = chosen.long()
    local = torch.where((wide >= low) & (wide < low + num_local), wide - low, -1)
    here = local >= 0
    counts = local[here].bincount(minlength=num_local)
    padded = (counts + alignment - 1) // alignment * alignment
    starts = padded.cumsum(0) - padded
    expanded = index = None
    if do_expand:
        turn = None if sort else order(len(local))
        turn = None if turn is None else turn.to(local.device)
        expanded, index = _expanded(local, counts, starts, int(padded.sum()), turn, row)
    # A copy: without a sort these are numbers in the buffer, which the next call overwrites.
    return Placement(row, local, src.clone(), counts, expanded, index, starts, alignment)


def _expanded(
    local: torch.Tensor,
    counts: torch.Tensor,
    starts: torch.Tensor,
    size: int,
    turn: torch.Tensor | None,
    row: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    walked = local if turn is None else local[turn]
    at, choice = (walked >= 0).nonzero(as_tuple=True)
    expert = walked[at, choice]
    token = at if turn is None else turn[at]
    by_expert = expert.argsort(stable=True)
    first = counts.cumsum(0) - counts
    ranked = expert[by_expert]
    everyone = torch.arange(len(expert), device=local.device)
    place = torch.empty_like(expert)
    place[by_expert] = everyone - first[ranked] + starts[ranked]
    expanded = torch.full_like(local, -1)
    expanded[token, choice] = place
    index = torch.full((size,), -1, dtype=torch.int32, device=local.device)
    index[place] = (token if row is None else row[token]).to(torch.int32)
    return expanded, index
