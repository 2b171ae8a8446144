"""The NumPy form of the algorithm behind the arguments of the public function."""

from __future__ import annotations

import torch

from topk.radix_select import arguments, visit
from topk.radix_select.streaming import stream
from topk.radix_select.values import check_nan, check_ranges


def streamed(
    x: torch.Tensor,
    k: int,
    *,
    sorted: bool = False,
    sorted_index: bool = False,
    deterministic: bool = False,
    begin: torch.Tensor | None = None,
    end: torch.Tensor | None = None,
    indices_type: torch.dtype = torch.int64,
    output_idx_offset: torch.Tensor | None = None,
    idx_oob_fill_value: int = arguments.IDX_FILL,
    value_oob_fill_value: float = float("-inf"),
    return_value: bool = True,
    tie_break: str = "any",
    on_nan: str = "largest",
    page_table: torch.Tensor | None = None,
    page_size: int = 1,
    check_values: bool = True,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """``topk.topk`` by the streaming algorithm, row by row, with small blocks and little slack."""
    if check_values:
        wide = indices_type == torch.int64
        check_ranges(x, begin, end, output_idx_offset, wide, page_table, page_size)
    if on_nan == "raise":
        check_nan(x, begin, end)
    rows, row_len = x.shape
    values = torch.full((rows, k), value_oob_fill_value, dtype=x.dtype)
    indices = torch.full((rows, k), idx_oob_fill_value, dtype=indices_type)
    for r in range(rows):
        low = 0 if begin is None else max(int(begin[r]), 0)
        high = row_len if end is None else min(int(end[r]), row_len)
        mine = x[r, low : max(low, high)]
        blocks = -(-len(mine) // 8)
        order = visit.order(blocks, visit.table(1 << max(blocks - 1, 0).bit_length()))
        found = torch.from_numpy(stream(mine.float().numpy(), k, order, block=8, slack=3).indices)
        found = found + low
        if sorted_index or (deterministic and not sorted):
            found = found.sort().values
        n = len(found)
        values[r, :n] = x[r, found]
        if page_table is not None:
            found = page_table[r].long()[found // page_size] * page_size + found % page_size
        offset = 0 if output_idx_offset is None else int(output_idx_offset[r])
        indices[r, :n] = (found + offset).to(indices_type)
    return (values if return_value else None), indices
