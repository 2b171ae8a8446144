"""topk in NumPy, row by row, from the words of the contract."""

from __future__ import annotations

from typing import Any

import numpy as np


def oracle(
    input: np.ndarray,
    topk: int,
    sorted: bool = False,
    begin: np.ndarray | None = None,
    end: np.ndarray | None = None,
    indices_type: Any = None,
    sorted_index: bool = False,
    hint: None = None,
    output_idx: None = None,
    output_idx_offset: np.ndarray | None = None,
    idx_oob_fill_value: int = 2**31 - 1,
    value_oob_fill_value: float = float("-inf"),
    return_value: bool = True,
    page_table: np.ndarray | None = None,
    page_size: int = 1,
) -> tuple[np.ndarray | None, np.ndarray]:
    """Candidates of a row ranked by (NaN first, larger first, smaller index first)."""
    rows, row_len = input.shape
    values = np.full((rows, topk), value_oob_fill_value, input.dtype)
    indices = np.full((rows, topk), idx_oob_fill_value, np.int64)
    for r in range(rows):
        first = 0 if begin is None else int(begin[r])
        last = row_len if end is None else int(end[r])
        candidates = np.arange(max(first, 0), max(min(last, row_len), max(first, 0)))
        x = input[r, candidates].astype(np.float64)
        nan = np.isnan(x)
        rank = np.lexsort((candidates, -np.where(nan, 0.0, x), ~nan))[:topk]
        chosen = candidates[rank]
        if sorted_index:
            chosen = np.sort(chosen)
        values[r, : len(chosen)] = input[r, chosen]
        if page_table is not None:
            chosen = page_table[r, chosen // page_size].astype(np.int64) * page_size + (
                chosen % page_size
            )
        offset = 0 if output_idx_offset is None else int(output_idx_offset[r])
        indices[r, : len(chosen)] = chosen + offset
    return (values if return_value else None), indices


def invariants(result: Any, input: np.ndarray, topk: int, *rest: Any) -> list[str]:
    """Order flags: sets are compared without order, so it is looked at here."""
    sorted, _, _, _, sorted_index = (*rest, *(None,) * 5)[:5]
    values, indices = result
    paged = len(rest) > 11 and rest[11] is not None
    broken = []
    if sorted and values is not None:
        x = np.where(np.isnan(values), np.inf, values.astype(np.float64))
        if (x[:, :-1] < x[:, 1:]).any():
            broken.append("sorted: values are not in descending order")
    if sorted_index and not paged:
        fill = rest[8] if len(rest) > 8 else 2**31 - 1
        for r, row in enumerate(indices):
            if (np.diff(row[row != fill]) <= 0).any():
                broken.append(f"sorted_index: row {r} is not in ascending order")
                break
    return broken
