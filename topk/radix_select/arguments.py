"""What a call may pass, as its metadata says; what values may be is in values.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendkit.dispatch import check_dense
from ascendkit.errors import bad_type, bad_value, unknown

if TYPE_CHECKING:
    import torch

MAX_TOPK = 4096
IDX_FILL = MAX_INT32 = 2**31 - 1
DTYPES = ("bfloat16", "float16", "float32")
TIE_BREAKS = ("any", "smallest_index")
ON_NAN = ("largest", "raise")


@dataclass(frozen=True)
class Requirements:
    """Strides, in bytes.

    Args:
        legal: every multiple of this is accepted (one element).
        fast_input: row strides and base addresses that are multiples of it are read in whole
            vectors from the first candidate on.
    """

    legal: int
    fast_input: int = 16


def requirements(dtype: torch.dtype | None = None) -> Requirements:
    """What :func:`topk.topk` asks of strides, and what its fast path likes (default bfloat16)."""
    import torch

    if dtype is None:
        return Requirements(2)
    if not isinstance(dtype, torch.dtype):
        raise bad_type("topk requirements dtype", dtype, "a torch.dtype")
    return Requirements(_floats(dtype, "requirements dtype").itemsize)


def wide_indices(indices_type: Any, output_idx: torch.Tensor | None) -> bool:
    """Whether indices are int64."""
    import torch

    chosen = indices_type or (torch.int64 if output_idx is None else output_idx.dtype)
    return bool(chosen == torch.int64)


def index_dtype(wide: bool) -> torch.dtype:
    """int64 or int32."""
    import torch

    return torch.int64 if wide else torch.int32


def check(
    input: Any,
    topk: Any,
    sorted: Any,
    begin: Any,
    end: Any,
    indices_type: Any,
    sorted_index: Any,
    hint: Any,
    output_idx: Any,
    output_idx_offset: Any,
    idx_fill: Any,
    value_fill: Any,
    tie_break: Any,
    on_nan: Any,
    page_table: Any,
    page_size: Any,
    return_value: Any,
    deterministic: Any,
) -> None:
    """Raise TypeError or ValueError for metadata that is not legal; allocates nothing."""
    import torch

    _tensor("input", input)
    _floats(input.dtype, "input")
    if input.dim() != 2:
        raise bad_value("topk input", tuple(input.shape), "2 dimensions (rows, row_len)")
    _rows_apart("input", input)
    _integer("topk", topk)
    if not 1 <= topk <= MAX_TOPK:
        nearest = min(max(topk, 1), MAX_TOPK)
        raise bad_value("topk topk", topk, f"1 to {MAX_TOPK}", nearest)
    flags = {"sorted": sorted, "sorted_index": sorted_index, "return_value": return_value,
             "deterministic": deterministic}  # fmt: skip
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise bad_type(f"topk {name}", flag, "a bool")
    if sorted and sorted_index:
        raise bad_value("topk sorted, sorted_index", (True, True), "at most one of them")
    if hint is not None:
        raise bad_value("topk hint", hint, "None (reserved)", None)
    if indices_type not in (None, torch.int32, torch.int64):
        raise TypeError(f"topk indices_type: got {indices_type}, wanted torch.int32 or torch.int64")
    for name, choice, legal in (("tie_break", tie_break, TIE_BREAKS), ("on_nan", on_nan, ON_NAN)):
        if choice not in legal:
            raise unknown(f"topk {name}", choice, legal)
    for name, t in (("begin", begin), ("end", end), ("output_idx_offset", output_idx_offset)):
        if t is not None:
            _per_row(name, t, input)
    if output_idx is not None:
        _check_output(output_idx, input, topk, indices_type)
    _integer("idx_oob_fill_value", idx_fill)
    _check_value_fill(value_fill, input.dtype)
    info = torch.iinfo(index_dtype(wide_indices(indices_type, output_idx)))
    if not info.min <= idx_fill <= info.max:
        nearest = min(max(idx_fill, info.min), info.max)
        raise bad_value("topk idx_oob_fill_value", idx_fill, f"a value of {info.dtype}", nearest)
    _integer("page_size", page_size)
    if not 1 <= page_size <= MAX_INT32:
        near = 1 if page_size < 1 else MAX_INT32
        raise bad_value("topk page_size", page_size, f"at least 1, at most {MAX_INT32}", near)
    if page_table is not None:
        _check_pages(page_table, input, page_size)
    elif page_size != 1:
        raise bad_value("topk page_size", page_size, "a page_table beside it", 1)


def _check_value_fill(fill: Any, dtype: torch.dtype) -> None:
    """A number whose nearest value of ``dtype`` is finite, an infinity, or NaN."""
    import torch

    if isinstance(fill, bool) or not isinstance(fill, (int, float)):
        raise bad_type("topk value_oob_fill_value", fill, "a float")
    if isinstance(fill, float) and not math.isfinite(fill):
        return
    most = torch.finfo(dtype).max
    if not -most <= fill <= most:
        got = fill if isinstance(fill, float) else "an int beyond all of them"
        raise bad_value("topk value_oob_fill_value", got, f"a value of {dtype}, inf or nan",
                        most if fill > 0 else -most)  # fmt: skip


def _floats(dtype: torch.dtype, name: str) -> torch.dtype:
    if str(dtype).removeprefix("torch.") not in DTYPES:
        raise TypeError(f"topk {name}: got {dtype}, wanted one of {', '.join(DTYPES)}")
    return dtype


def _check_output(output_idx: Any, input: torch.Tensor, topk: int, indices_type: Any) -> None:
    import torch

    _tensor("output_idx", output_idx)
    legal = (indices_type,) if indices_type is not None else (torch.int32, torch.int64)
    if output_idx.dtype not in legal:
        wanted = " or ".join(map(str, legal))
        raise TypeError(f"topk output_idx: got {output_idx.dtype}, wanted {wanted}")
    _shape("output_idx", output_idx, (input.shape[0], topk))
    _rows_apart("output_idx", output_idx)
    _same_device("output_idx", output_idx, input)


def _check_pages(page_table: Any, input: torch.Tensor, page_size: int) -> None:
    import torch

    _tensor("page_table", page_table)
    if page_table.dtype != torch.int32:
        raise TypeError(f"topk page_table: got {page_table.dtype}, wanted torch.int32")
    pages = -(-input.shape[1] // page_size)
    got = tuple(page_table.shape)
    if len(got) != 2 or got[0] != input.shape[0] or got[1] < pages:
        raise bad_value("topk page_table", got,
                        f"(rows, pages), pages * page_size >= row_len, with page_size {page_size}",
                        (input.shape[0], pages))  # fmt: skip
    if page_table.numel() and got[1] > 1 and page_table.stride(1) != 1:
        raise bad_value("topk page_table strides", page_table.stride(), "contiguous rows")
    _same_device("page_table", page_table, input)


def _per_row(name: str, t: Any, input: torch.Tensor) -> None:
    import torch

    _tensor(name, t)
    if t.dtype != torch.int32:
        raise TypeError(f"topk {name}: got {t.dtype}, wanted torch.int32")
    _shape(name, t, (input.shape[0],))
    if not t.is_contiguous():
        raise bad_value(f"topk {name} strides", t.stride(), "contiguous", (1,))
    _same_device(name, t, input)


def _rows_apart(name: str, t: torch.Tensor) -> None:
    """The last dimension contiguous, rows not overlapping."""
    rows, width = t.shape
    if not rows or not width:
        return
    if width > 1 and t.stride(1) != 1:
        raise bad_value(f"topk {name} strides", t.stride(), "a contiguous last dimension")
    if rows > 1 and t.stride(0) < width:
        raise bad_value(f"topk {name} strides", t.stride(), f"rows {width} apart or more",
                        (width, 1))  # fmt: skip


def _tensor(name: str, t: Any) -> None:
    check_dense(f"topk {name}", t)


def _shape(name: str, t: torch.Tensor, wanted: tuple[int, ...]) -> None:
    if tuple(t.shape) != wanted:
        raise bad_value(f"topk {name}", tuple(t.shape), "one entry a row and place", wanted)


def _same_device(name: str, t: torch.Tensor, input: torch.Tensor) -> None:
    if t.device != input.device:
        raise bad_value(f"topk {name} device", str(t.device), "that of input", str(input.device))


def _integer(name: str, n: Any) -> None:
    import torch

    if isinstance(n, bool) or not isinstance(n, (int, torch.SymInt)):
        raise bad_type(f"topk {name}", n, "an int")
