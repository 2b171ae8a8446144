"""RadixSelect TopK: the k largest of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit import dispatch
from ascendkit import platform as platforms
from topk.radix_select import arguments
from topk.radix_select import values as value_checks
from topk.radix_select.arguments import IDX_FILL, MAX_TOPK, requirements

if TYPE_CHECKING:
    import torch

__all__ = ["MAX_TOPK", "radix_select", "requirements", "topk"]

SCHEMA = (
    "(Tensor input, int topk, bool sorted, Tensor? begin, Tensor? end, ScalarType? indices_type,"
    " bool sorted_index, Tensor? hint, Tensor? output_idx, Tensor? output_idx_offset,"
    " int idx_oob_fill_value, float value_oob_fill_value, bool return_value, Tensor? page_table,"
    " int page_size) -> (Tensor, Tensor)"
)

OUTPUTS = ("values", "output_idx")

_name = "topk.radix_select"


def topk(
    input: torch.Tensor,
    topk: int,
    sorted: bool = False,
    begin: torch.Tensor | None = None,
    end: torch.Tensor | None = None,
    indices_type: torch.dtype | None = None,
    sorted_index: bool = False,
    hint: None = None,
    output_idx: torch.Tensor | None = None,
    output_idx_offset: torch.Tensor | None = None,
    idx_oob_fill_value: int = IDX_FILL,
    value_oob_fill_value: float = float("-inf"),
    return_value: bool = True,
    *,
    tie_break: str = "any",
    on_nan: str = "largest",
    deterministic: bool = False,
    page_table: torch.Tensor | None = None,
    page_size: int = 1,
    check_values: bool | None = None,
    platform: str | None = None,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """The ``topk`` largest values of every row and where they are.

    Order of values: NaN above +inf (all NaNs equal), -0.0 equal to 0.0, infinities ordinary. Values
    come back with the bits they have in ``input``. A row whose range holds fewer than ``topk``
    candidates gives all of them, then fill values; -inf is a candidate like any other. Every index
    of a row occurs once.

    Args:
        input: bfloat16, float16 or float32 (rows, row_len), last dimension contiguous, rows at any
            stride that keeps them apart. See :func:`requirements` for the fast path.
        topk: 1 to 4096; more than ``row_len`` is legal.
        sorted: descending by value, equal values by index.
        begin: int32 (rows,), first candidate of each row; 0 by default.
        end: int32 (rows,), one past the last candidate; ``row_len`` by default. ``end <= begin``
            means no candidate.
        indices_type: torch.int64 (default) or torch.int32.
        sorted_index: ascending by index; not with ``sorted``.
        hint: reserved by upstream; must be None.
        output_idx: (rows, topk) of ``indices_type``, last dimension contiguous; written and
            returned. Rows may have any stride that keeps them apart; no memory of an input's.
        output_idx_offset: int32 (rows,), added to the indices of a row; never to the fill value.
        idx_oob_fill_value: index of missing candidates.
        value_oob_fill_value: value of missing candidates; finite in the input's dtype, inf or nan.
        return_value: False returns None for the values.
        tie_break: which of equal values at the boundary are taken: ``smallest_index``, or ``any``,
            which promises nothing (all implementations here take the smallest either way).
        on_nan: ``largest``, or ``raise``: ValueError where a candidate is NaN (synchronises).
        deterministic: equal inputs give equal bits: ``smallest_index``, and ascending by index
            unless ``sorted``.
        page_table: int32 (rows, pages) with ``pages * page_size >= row_len``: an index becomes
            ``page_table[row, index // page_size] * page_size + index % page_size``, before the
            offset is added. Orders are those of the indices before.
        page_size: candidates a page holds; at most 2**31 - 1, and 1 without a table.
        check_values: raise where ``begin``, ``end``, the offsets or pages that hold a candidate are
            out of range; by default on ``reference`` and ``emulator``. Unchecked ranges are clamped
            to the row.
        platform: a platform to force; by default the device of ``input`` decides.

    Returns:
        (values (rows, topk) of the input's dtype, or None; indices (rows, topk)). Without an order
        asked for, the order is unspecified but the same in both; missing candidates come last.
        No gradient flows through them.

    Raises:
        TypeError: an argument of the wrong type or dtype.
        ValueError: a shape, stride, device or limit that is not legal; values as above.

    Source: names and order of arguments of DeepSelect's ``topk``; the rules on NaN, zeros, ties and
    ranges are this project's.
    """
    arguments.check(
        input, topk, sorted, begin, end, indices_type, sorted_index, hint, output_idx,
        output_idx_offset, idx_oob_fill_value, value_oob_fill_value, tie_break, on_nan,
        page_table, page_size, return_value, deterministic,
    )  # fmt: skip
    chosen = platform
    if not dispatch.traced([input]):
        chosen = platforms.current(input.device.type, platform)
    if check_values is None:
        check_values = chosen in ("reference", "emulator")
    wide = arguments.wide_indices(indices_type, output_idx)
    if check_values:
        value_checks.check_ranges(input, begin, end, output_idx_offset, wide, page_table, page_size)
    if on_nan == "raise":
        value_checks.check_nan(input, begin, end)
    sorted_index = sorted_index or (deterministic and not sorted)
    args = (
        input.detach(), topk, sorted, begin, end, arguments.index_dtype(wide), sorted_index, None,
        None, output_idx_offset, idx_oob_fill_value, float(value_oob_fill_value), return_value,
        page_table, page_size,
    )  # fmt: skip
    values, indices = _call(args, output_idx, chosen)
    return values if return_value else None, indices


radix_select = topk


def allocate(
    input: torch.Tensor,
    topk: int,
    sorted: bool = False,
    begin: torch.Tensor | None = None,
    end: torch.Tensor | None = None,
    indices_type: torch.dtype | None = None,
    sorted_index: bool = False,
    hint: None = None,
    output_idx: torch.Tensor | None = None,
    output_idx_offset: torch.Tensor | None = None,
    idx_oob_fill_value: int = IDX_FILL,
    value_oob_fill_value: float = float("-inf"),
    return_value: bool = True,
    page_table: torch.Tensor | None = None,
    page_size: int = 1,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """The outputs of a call, not filled; values are None where none are wanted."""
    import torch

    shape = (input.shape[0], topk)
    values = input.new_empty(shape) if return_value else None
    if output_idx is None:
        output_idx = input.new_empty(shape, dtype=indices_type or torch.int64)
    return values, output_idx


def _call(args: tuple[Any, ...], output_idx: torch.Tensor | None, platform: str | None) -> Any:
    input, topk, sorted = args[:3]
    params = {
        "rows": input.shape[0],
        "row_len": input.shape[1],
        "num_topk": topk,
        "dtype": str(input.dtype).removeprefix("torch."),
        "sorted": sorted,
    }
    if dispatch.traced(t for t in (input, output_idx) if t is not None):
        # An operator of a traced program returns tensors, never None.
        args = (*args[:12], True, *args[13:])
        values, indices = dispatch.call(_name, args, params, platform=platform)
        return values, indices if output_idx is None else output_idx.copy_(indices)
    if output_idx is None:
        return dispatch.call(_name, args, params, platform=platform)
    out = allocate(*args[:8], output_idx, *args[9:])
    return dispatch.call(_name, args, params, out=out, platform=platform)
