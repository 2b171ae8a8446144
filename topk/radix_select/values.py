"""What values of a call may be, where somebody asked for that look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit.errors import bad_value
from topk.radix_select.arguments import MAX_INT32

if TYPE_CHECKING:
    import torch


def check_ranges(
    input: torch.Tensor,
    begin: torch.Tensor | None,
    end: torch.Tensor | None,
    offset: torch.Tensor | None,
    wide: bool,
    page_table: torch.Tensor | None = None,
    page_size: int = 1,
) -> None:
    """Raise ValueError for a begin below 0, an end above the row, pages below 0, sums beyond
    int32. Pages without a candidate are not looked at."""
    if not _readable(input, begin, end, offset, page_table):
        return
    row_len = input.shape[1]
    if begin is not None:
        _each(begin, begin >= 0, "begin", "at least 0", 0)
    if end is not None:
        _each(end, end <= row_len, "end", f"at most row_len {row_len}", row_len)
    if page_table is not None:
        _check_reached(input, begin, end, offset, wide, page_table, page_size)
    elif offset is not None and not wide:
        most = MAX_INT32 - max(row_len - 1, 0)
        _each(offset, offset <= most, "output_idx_offset", "sums that int32 holds", most)


def check_nan(input: torch.Tensor, begin: torch.Tensor | None, end: torch.Tensor | None) -> None:
    """Raise ValueError where a candidate is NaN."""
    import torch

    if not _readable(input, begin, end):
        return
    bad = input.isnan()
    at = torch.arange(input.shape[1], device=input.device)
    if begin is not None:
        bad &= at >= begin[:, None]
    if end is not None:
        bad &= at < end[:, None]
    count = int(bad.sum())
    if count:
        row, index = bad.nonzero()[0].tolist()
        raise ValueError(
            f"topk input: got {count} NaN candidates, the first at row {row}, index {index}; "
            "wanted none (on_nan='largest' ranks them above inf)"
        )


def _check_reached(
    input: torch.Tensor,
    begin: torch.Tensor | None,
    end: torch.Tensor | None,
    offset: torch.Tensor | None,
    wide: bool,
    page_table: torch.Tensor,
    page_size: int,
) -> None:
    import torch

    rows, row_len = input.shape
    first = torch.arange(page_table.shape[1], device=input.device).expand(rows, -1) * page_size
    low = first.new_zeros(rows) if begin is None else begin.long()
    high = first.new_full((rows,), row_len) if end is None else end.long()
    last = torch.minimum(first + page_size, high[:, None]) - 1
    reached = (last >= first) & (last >= low[:, None]) & (low < high)[:, None]
    page = page_table.long()
    sums = page * page_size + last - first
    if offset is not None:
        sums = sums + offset.long()[:, None]
    bad = reached & ((page < 0) | ((sums > MAX_INT32) & (not wide)))
    if not bool(bad.any()):
        return
    row, at = bad.nonzero()[0].tolist()
    got, over = int(page[row, at]), int(sums[row, at]) - MAX_INT32
    rule = "at least 0" if got < 0 else (
        f"sums with page_size {page_size} and the offset that int32 holds")  # fmt: skip
    most = got - -(-over // page_size)
    near = 0 if got < 0 else most if most >= 0 else None
    raise bad_value(f"topk page_table[{row}, {at}]", got, rule, near)


def _each(t: torch.Tensor, ok: torch.Tensor, name: str, wanted: str, nearest: int) -> None:
    if not bool(ok.all()):
        row = int((~ok).nonzero()[0])
        raise bad_value(f"topk {name}[{row}]", int(t[row]), wanted, nearest)


def _readable(*found: torch.Tensor | None) -> bool:
    """Values can be looked at: nothing traces, and the tensors are real."""
    import torch

    if torch.compiler.is_compiling():
        return False
    real = (torch.Tensor, torch.nn.Parameter)
    return all(t is None or (type(t) in real and t.device.type != "meta") for t in found)
