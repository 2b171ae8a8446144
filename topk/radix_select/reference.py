"""topk in plain torch: the definition of right."""

from __future__ import annotations

import torch

from topk.radix_select.arguments import IDX_FILL


def reference(
    input: torch.Tensor,
    topk: int,
    sorted: bool = False,
    begin: torch.Tensor | None = None,
    end: torch.Tensor | None = None,
    indices_type: torch.dtype | None = None,
    sorted_index: bool = False,
    hint: None = None,
    output_idx: None = None,
    output_idx_offset: torch.Tensor | None = None,
    idx_oob_fill_value: int = IDX_FILL,
    value_oob_fill_value: float = float("-inf"),
    return_value: bool = True,
    page_table: torch.Tensor | None = None,
    page_size: int = 1,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """A stable descending argsort, candidates before all else, cut after ``topk`` columns.

    Without ``sorted_index`` the order is descending by value, equal values by index.
    """
    rows, row_len = input.shape
    at = torch.arange(row_len).expand(rows, row_len)
    low = at.new_zeros(rows) if begin is None else begin.long()
    high = at.new_full((rows,), row_len) if end is None else end.long()
    inside = (at >= low[:, None]) & (at < high[:, None])
    ranked = input.argsort(dim=-1, descending=True, stable=True)
    outside = ~inside.gather(-1, ranked)
    ranked = ranked.gather(-1, outside.to(torch.uint8).argsort(dim=-1, stable=True))[:, :topk]
    count = inside.sum(-1, keepdim=True)
    missing = torch.arange(ranked.shape[1]) >= count
    if sorted_index:
        ranked = ranked.masked_fill(missing, row_len).sort(dim=-1).values
    found = ranked.masked_fill(missing, 0)
    # As integers: torch may change the payload of a NaN that passes through arithmetic.
    bits = input.view(torch.int32 if input.element_size() == 4 else torch.int16)
    fill = input.new_full((1,), value_oob_fill_value).view(bits.dtype)[0]
    values = bits.gather(-1, found) if row_len else bits.new_empty(rows, 0)
    values = torch.where(missing, fill, values)
    if page_table is not None and row_len:
        page = page_table.long().gather(-1, found // page_size)
        found = page * page_size + found % page_size
    if output_idx_offset is not None:
        found = found + output_idx_offset.long()[:, None]
    found = found.masked_fill(missing, idx_oob_fill_value)
    indices = _widened(found, topk, idx_oob_fill_value).to(indices_type or torch.int64)
    if not return_value:
        return None, indices
    return _widened(values, topk, fill).view(input.dtype), indices


def _widened(t: torch.Tensor, width: int, fill: int | torch.Tensor) -> torch.Tensor:
    """``t`` (rows, <= width) with columns of ``fill`` behind it."""
    out = t.new_empty((t.shape[0], width))
    out[:] = fill
    out[:, : t.shape[1]] = t
    return out
