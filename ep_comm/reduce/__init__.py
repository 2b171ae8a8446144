"""reduce: the ordered reduce epilogue of combine, and its partial sums on ranks and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascendkit import dispatch
from ascendkit import platform as platforms
from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

SCHEMA = "(Tensor rows, Tensor table, Tensor? bias_0, Tensor? bias_1) -> Tensor"
ALIGN = 8
"""bf16 values; 16 bytes, one vector."""
MAX_TOPK = 32

_name = "ep_comm.reduce"


def reduce(
    rows: torch.Tensor,
    table: torch.Tensor,
    bias_0: torch.Tensor | None = None,
    bias_1: torch.Tensor | None = None,
    *,
    out: torch.Tensor | None = None,
    platform: str | None = None,
) -> torch.Tensor:
    """Sum of the biases and of the rows in a token's line of the table, in that order.

    The sum starts at +0.0, runs in float32 over bias_0, bias_1, then choice 0, 1, ..., and is
    rounded once to bf16, to nearest even. Entries of -1 are left out.

    Args:
        rows: bf16 (num_rows, hidden), contiguous; hidden a multiple of 8.
        table: int32 (num_tokens, k), contiguous, from -1 to num_rows - 1; k from 1 to 32.
        bias_0, bias_1: bf16 (num_tokens, hidden), contiguous, or None.
        out: bf16 (num_tokens, hidden), contiguous; written and returned.
        platform: a platform to force; by default the device of ``rows`` decides.

    Raises:
        TypeError, ValueError: dtype, shape, stride or device that is not legal.

    Source: ordered_accumulate of DeepEP-Ascend's references.
    """
    _check(rows, table, bias_0, bias_1, out)
    params = {
        "num_rows": rows.shape[0],
        "num_tokens": table.shape[0],
        "num_topk": table.shape[1],
        "hidden": rows.shape[1],
        "num_bias": (bias_0 is not None) + (bias_1 is not None),
    }
    if bias_0 is None:
        bias_0, bias_1 = bias_1, None
    chosen = platforms.current(rows.device.type, platform)
    args = (rows, table, bias_0, bias_1)
    return dispatch.call(_name, args, params, out=out, platform=chosen)


def allocate(
    rows: torch.Tensor,
    table: torch.Tensor,
    bias_0: torch.Tensor | None = None,
    bias_1: torch.Tensor | None = None,
) -> torch.Tensor:
    """The output of a call, not filled."""
    return rows.new_empty((table.shape[0], rows.shape[1]))


def _check(
    rows: torch.Tensor,
    table: torch.Tensor,
    bias_0: torch.Tensor | None,
    bias_1: torch.Tensor | None,
    out: torch.Tensor | None,
) -> None:
    import torch

    for name, got in (("rows", rows), ("table", table)):
        if not isinstance(got, torch.Tensor):
            raise bad_type(f"reduce {name}", got, "a torch.Tensor")
        if got.dim() != 2 or not got.is_contiguous():
            raise bad_value(
                f"reduce {name}", f"{tuple(got.shape)} {got.stride()}", "2 dimensions, contiguous"
            )
    if rows.dtype != torch.bfloat16:
        raise TypeError(f"reduce rows: got {rows.dtype}, wanted torch.bfloat16")
    if table.dtype != torch.int32:
        raise TypeError(f"reduce table: got {table.dtype}, wanted torch.int32")
    hidden, topk = rows.shape[1], table.shape[1]
    if not hidden or hidden % ALIGN:
        near = max(ALIGN, hidden // ALIGN * ALIGN)
        raise bad_value("reduce hidden", hidden, f"a multiple of {ALIGN}", near)
    if not 1 <= topk <= MAX_TOPK:
        raise bad_value("reduce k", topk, f"1 to {MAX_TOPK}", min(max(topk, 1), MAX_TOPK))
    if table.device != rows.device:
        raise bad_value("reduce table device", str(table.device), f"{rows.device}")
    wanted = (table.shape[0], hidden)
    for name, maybe in (("bias_0", bias_0), ("bias_1", bias_1), ("out", out)):
        if maybe is not None and (
            maybe.dtype != torch.bfloat16
            or maybe.shape != wanted
            or not maybe.is_contiguous()
            or maybe.device != rows.device
        ):
            raise bad_value(
                f"reduce {name}",
                f"{maybe.dtype} {tuple(maybe.shape)} on {maybe.device}",
                f"contiguous torch.bfloat16 {wanted} on {rows.device}",
            )
