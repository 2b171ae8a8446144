"""Dispatch and combine of all ranks in one process, in strict order: the definition of right.

Rows arrive by source rank and then by token; sums run over choices 0, 1, ... in float32 and are
rounded to bf16 once a level. Every backend is held against this bit by bit; where a backend may
deliver in another order, after sorting by ``src_token_global_idx``.

Source: the references and the test contract of DeepEP and DeepEP-Ascend, in our own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

Bias = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Setting:
    """What all ranks agree on.

    Args:
        num_experts: E; rank r holds [r * E/N, (r + 1) * E/N).
        num_max_tokens_per_rank: T.
        expert_alignment: rows of an expert start at a multiple of it (expanded layout).
        do_expand: one row a (token, expert) instead of one a token.
        do_zero_padding: gap rows are zero (expanded layout).
        multiple_reduction: partial sums on the expert's rank, and on its node.
        scaleup_ranks: ranks of a node; all for direct mode.
    """

    num_experts: int
    num_max_tokens_per_rank: int
    expert_alignment: int = 1
    do_expand: bool = False
    do_zero_padding: bool = False
    multiple_reduction: bool = True
    scaleup_ranks: int = 0


@dataclass(frozen=True)
class Sent:
    """What one rank gives to dispatch: x [t, H], scales, choices [t, k], weights [t, k]."""

    x: torch.Tensor
    topk_idx: torch.Tensor
    sf: torch.Tensor | None = None
    topk_weights: torch.Tensor | None = None


@dataclass
class Received:
    """What one rank gets; fields as in the public API, exact sizes."""

    x: torch.Tensor
    sf: torch.Tensor | None
    topk_idx: torch.Tensor
    topk_weights: torch.Tensor | None
    src_token_global_idx: torch.Tensor
    expanded_row: torch.Tensor
    num_recv_tokens_per_rank: torch.Tensor
    num_recv_tokens_per_expert: torch.Tensor
    psum_per_scaleup_rank: torch.Tensor
    psum_per_expert: torch.Tensor
    rows: torch.Tensor = field(repr=False)
    """int64 [R or X]: row of the deduplicated arrivals behind every output row, -1 in gaps."""


def dispatch(sent: Sequence[Sent], setting: Setting) -> list[Received]:
    """Outputs of every rank."""
    return [_receive(sent, setting, rank) for rank in range(len(sent))]


def _receive(sent: Sequence[Sent], s: Setting, rank: int) -> Received:
    ranks = len(sent)
    local = s.num_experts // ranks
    low = rank * local
    here = [((m.topk_idx >= low) & (m.topk_idx < low + local)).any(dim=1) for m in sent]
    x = torch.cat([_rows(m.x, h) for m, h in zip(sent, here)])
    sf = None if sent[0].sf is None else torch.cat([_rows(m.sf, h) for m, h in zip(sent, here)])
    chosen = torch.cat([m.topk_idx[h] for m, h in zip(sent, here)])
    mine = (chosen >= low) & (chosen < low + local)
    topk_idx = torch.where(mine, chosen - low, -1)
    weights = None
    if sent[0].topk_weights is not None:
        given = [m.topk_weights for m in sent if m.topk_weights is not None]
        weights = torch.cat([w[h] for w, h in zip(given, here)])
    base = [r * s.num_max_tokens_per_rank for r in range(ranks)]
    src = torch.cat([b + h.nonzero().squeeze(1) for b, h in zip(base, here)])
    per_rank = torch.tensor([int(h.sum()) for h in here])
    near = s.scaleup_ranks or ranks
    per_near = per_rank.view(-1, near).sum(0)
    per_expert = torch.tensor([int((topk_idx == e).sum()) for e in range(local)], dtype=torch.int64)
    expanded, rows, psum = _expanded(topk_idx, per_expert, s)
    if s.do_expand:
        x = _pick(x, rows)
        sf = None if sf is None else _pick(sf, rows)
        if weights is not None:
            flat = weights.new_zeros(len(rows))
            flat[expanded[mine]] = weights[mine]
            weights = flat
    return Received(
        x, sf, topk_idx, weights, src.to(torch.int32), expanded.to(torch.int32),
        per_rank, per_expert, per_near.cumsum(0).to(torch.int32), psum.to(torch.int32), rows,
    )  # fmt: skip


def _expanded(
    topk_idx: torch.Tensor, per_expert: torch.Tensor, s: Setting
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Expanded row of every choice, arrival behind every output row, and the prefix sum."""
    a = s.expert_alignment
    aligned = (per_expert + a - 1) // a * a
    start = aligned.cumsum(0) - aligned
    expanded = torch.full_like(topk_idx, -1)
    rows = torch.full((int(aligned.sum()),), -1, dtype=torch.int64)
    for expert in range(len(per_expert)):
        row, choice = (topk_idx == expert).nonzero(as_tuple=True)
        place = start[expert] + torch.arange(len(row))
        expanded[row, choice] = place
        rows[place] = row
    if not s.do_expand:
        return torch.full_like(expanded, -1), torch.arange(len(topk_idx)), aligned.cumsum(0)
    return expanded, rows, start + per_expert


def combine(
    y: Sequence[torch.Tensor],
    received: Sequence[Received],
    sent: Sequence[Sent],
    setting: Setting,
    *,
    bias: Sequence[Bias] = (),
    weights: Sequence[torch.Tensor] | None = None,
    only: int | None = None,
) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Combined x [t, H] bf16 and weights [t, k] of every rank, or of one.

    Args:
        y: bf16, one row for every row the rank received.
        bias: none, one or two tensors a rank, added first.
        weights: what travels back: [R, k], or [X] in the expanded layout.
        only: the rank whose result is wanted.
    """
    back = []
    for rank, mine in enumerate(sent):
        if only not in (None, rank):
            continue
        t, k = mine.topk_idx.shape
        rows = y[0].new_zeros((t, k, y[0].shape[1]))
        there = torch.zeros((t, k), dtype=torch.bool)
        w = None if weights is None else torch.zeros((t, k))
        for peer, got in enumerate(received):
            _collect(rows, there, w, rank, peer, y, got, weights, setting)
        ranks, local = len(sent), setting.num_experts // len(sent)
        where = torch.where(mine.topk_idx >= 0, mine.topk_idx // local, -1)
        if setting.multiple_reduction:
            if setting.do_expand:
                rows, there = _grouped(rows, there, where)
            near = setting.scaleup_ranks or ranks
            if near < ranks:
                node = torch.where(where >= 0, where // near, -1)
                rows, there = _grouped(rows, there, node)
        back.append((accumulate(rows, there, bias[rank] if bias else ()), w))
    return back


def accumulate(rows: torch.Tensor, there: torch.Tensor, bias: Bias = ()) -> torch.Tensor:
    """bf16 [t, H] of [t, k, H]: +0.0, biases, choices in order; float32, one rounding."""
    total = torch.zeros((rows.shape[0], rows.shape[2]))
    for b in bias:
        total = total + b.float()
    for j in range(rows.shape[1]):
        total = torch.where(there[:, j, None], total + rows[:, j].float(), total)
    return total.to(torch.bfloat16)


def _collect(
    rows: torch.Tensor,
    there: torch.Tensor,
    w: torch.Tensor | None,
    rank: int,
    peer: int,
    y: Sequence[torch.Tensor],
    got: Received,
    weights: Sequence[torch.Tensor] | None,
    s: Setting,
) -> None:
    """Put what ``peer`` sends back to ``rank`` where the choices are."""
    base = rank * s.num_max_tokens_per_rank
    src = got.src_token_global_idx.long()
    for row in ((src >= base) & (src < base + rows.shape[0])).nonzero().squeeze(1).tolist():
        token = int(src[row]) - base
        chosen = (got.topk_idx[row] >= 0).nonzero().squeeze(1).tolist()
        for j in chosen:
            place = int(got.expanded_row[row, j]) if s.do_expand else row
            if s.do_expand or j == chosen[-1]:
                rows[token, j], there[token, j] = y[peer][place], True
            if w is not None and weights is not None:
                w[token, j] = weights[peer][place] if s.do_expand else weights[peer][row, j]


def _grouped(
    rows: torch.Tensor, there: torch.Tensor, group: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums of a token's rows by group, each at the group's last choice."""
    out, kept = torch.zeros_like(rows), torch.zeros_like(there)
    k = group.shape[1]
    for j in range(k):
        last = (group[:, j] >= 0) & (group[:, j + 1 :] != group[:, j : j + 1]).all(dim=1)
        same = there & (group == group[:, j : j + 1])
        total = accumulate(rows, same)
        out[:, j] = torch.where(last[:, None], total, out[:, j])
        kept[:, j] = last & same.any(dim=1)
    return out, kept


def _rows(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _pick(x, mask.nonzero().squeeze(1))


def _pick(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows by number, zeros for -1; by bytes, since float8 has no gather on CPUs."""
    # A single column counts as contiguous whatever its stride: copy it into a fresh tensor.
    flat = torch.empty(x.shape, dtype=x.dtype).copy_(x)
    size = flat.element_size()
    out = torch.zeros((len(rows), flat.shape[1] * size), dtype=torch.uint8)
    if len(rows) and flat.numel():
        real = rows >= 0
        out[real] = flat.view(torch.uint8)[rows[real]]
    return out.view(x.dtype) if out.numel() else x.new_zeros((len(rows), x.shape[1]))
