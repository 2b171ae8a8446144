"""How the routing ops look at their arguments: one wording, and nothing allocated before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ascendkit.dispatch import check_dense
from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

Dim = int | str
"""A size a tensor must have, or the name of one that is free."""


def check_tensor(
    what: str,
    got: Any,
    dtypes: Sequence[torch.dtype],
    shape: Sequence[Dim],
    device: torch.device | None = None,
) -> None:
    """Raise unless ``got`` is a contiguous tensor of one of ``dtypes`` and of ``shape``.

    Args:
        what: op and argument, as messages name it.
        dtypes: legal ones; empty for any.
        shape: numbers are wanted sizes, names are free ones.
        device: the one wanted, None for any.
    """
    check_layout(what, got, dtypes, shape, device)
    if not got.is_contiguous():
        steps = [1]
        for size in reversed(got.shape[1:]):
            steps.insert(0, steps[0] * size)
        raise bad_value(f"{what} strides", got.stride(), "contiguous", tuple(steps))


def check_layout(
    what: str,
    got: Any,
    dtypes: Sequence[torch.dtype],
    shape: Sequence[Dim],
    device: torch.device | None = None,
) -> None:
    """:func:`check_tensor` without a word on strides."""
    check_dense(what, got)
    if dtypes and got.dtype not in dtypes:
        wanted = " or ".join(str(d) for d in dtypes)
        raise TypeError(f"{what}: got {got.dtype}, wanted {wanted}")
    fits = got.dim() == len(shape) and all(
        isinstance(want, str) or size == want for size, want in zip(got.shape, shape)
    )
    if not fits:
        raise bad_value(what, tuple(got.shape), f"({', '.join(map(str, shape))})")
    if device is not None and got.device != device:
        raise bad_value(f"{what} device", str(got.device), f"that of the other tensors, {device}")


def check_int(what: str, got: Any, low: int, high: int | None = None) -> None:
    """Raise unless ``got`` is an int (or a size torch traces) from ``low`` to ``high``."""
    import torch

    if not isinstance(got, (int, torch.SymInt)) or isinstance(got, bool):
        raise bad_type(what, got, "an int")
    if got < low or (high is not None and got > high):
        near = low if got < low else high
        rule = f"at least {low}" if high is None else f"{low} to {high}"
        raise bad_value(what, got, rule, near)


def check_float32(what: str, got: Any) -> None:
    """Raise unless ``got`` is a number that is finite as a float32."""
    import torch

    if not isinstance(got, (int, float, torch.SymInt, torch.SymFloat)) or isinstance(got, bool):
        raise bad_type(what, got, "a float")
    most = torch.finfo(torch.float32).max
    if not -most <= got <= most:
        shown = got if isinstance(got, float) else "an int beyond all of them"
        near = None if got != got else most if got > 0 else -most
        raise bad_value(what, shown, "a finite float32", near)


def check_outputs(
    op: str,
    out: Any,
    dtype: torch.dtype,
    shapes: Mapping[str, Sequence[int]],
    device: torch.device,
) -> None:
    """Raise unless ``out`` is None, or the tuple of the named contiguous outputs."""
    if out is None:
        return
    if not isinstance(out, (tuple, list)) or len(out) != len(shapes):
        names = ", ".join(shapes)
        raise bad_value(f"{op} out", type(out).__name__, f"None or a tuple ({names})")
    for (name, shape), got in zip(shapes.items(), out):
        check_tensor(f"{op} out {name}", got, [dtype], shape, device)
