"""expand: the copy epilogue of dispatch, one output row for every index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor rows, Tensor index) -> Tensor"
ALIGN = 16
"""Bytes; rows are multiples of it, so that they move in full vectors."""

_name = "ep_comm.expand"


def expand(
    rows: torch.Tensor,
    index: torch.Tensor,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Row ``index[i]`` of ``rows`` at row i; zeros where ``index[i]`` is -1.

    Args:
        rows: (num_rows, hidden) of any dtype, contiguous; a row is a multiple of 16 bytes.
        index: int32 (num_out,), contiguous, from -1 to num_rows - 1.
        out: (num_out, hidden) of the same dtype, contiguous; written and returned.
        platform: a platform to force; by default the device of ``rows`` decides.

    Raises:
        TypeError, ValueError: dtype, shape, stride or device that is not legal.

    Source: expanded layout and zero padding of DeepEP 2.5.0.
    """
    _check(rows, index, out)
    params = {
        "num_rows": rows.shape[0],
        "num_out": index.shape[0],
        "row_bytes": rows.shape[1] * rows.element_size(),
    }
    chosen = platforms.current(rows.device.type, platform)
    return dispatch.call(_name, (rows, index), params, out=out, platform=chosen)


def allocate(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The output of a call, not filled."""
    return rows.new_empty((index.shape[0], rows.shape[1]))


def _check(rows: torch.Tensor, index: torch.Tensor, out: torch.Tensor | None) -> None:
    import torch

    for name, got in (("rows", rows), ("index", index)):
        if not isinstance(got, torch.Tensor):
            raise bad_type(f"expand {name}", got, "a torch.Tensor")
        if not got.is_contiguous():
            raise bad_value(f"expand {name} strides", got.stride(), "contiguous")
    if rows.dim() != 2 or (rows.shape[1] * rows.element_size()) % ALIGN or not rows.shape[1]:
        raise bad_value(
            "expand rows",
            f"{tuple(rows.shape)} {rows.dtype}",
            f"(num_rows, hidden), a row being a multiple of {ALIGN} bytes",
        )
    if index.dtype != torch.int32:
        raise TypeError(f"expand index: got {index.dtype}, wanted torch.int32")
    if index.dim() != 1 or index.device != rows.device:
        raise bad_value(
            "expand index",
            f"{tuple(index.shape)} on {index.device}",
            f"(num_out,) on {rows.device}",
        )
    wanted = (index.shape[0], rows.shape[1])
    if out is not None and (
        out.shape != wanted
        or out.dtype != rows.dtype
        or not out.is_contiguous()
        or out.device != rows.device
    ):
        raise bad_value(
            "expand out",
            f"{out.dtype} {tuple(out.shape)} on {out.device}",
            f"contiguous {rows.dtype} {wanted} on {rows.device}",
        )
