"""Tensors as bits, as ordered integers, as doubles, and which elements are NaN or infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

FINITE, NAN, POS_INF, NEG_INF = 0, 1, 2, 3
PACKED = ("float4_e2m1fn_x2",)
"""dtypes that hold two values an element: compared as bytes, since torch cannot cast them."""


def is_packed(t: torch.Tensor) -> bool:
    """Whether an element of ``t`` is several packed values."""
    return str(t.dtype).removeprefix("torch.") in PACKED


def as_bits(t: torch.Tensor) -> torch.Tensor:
    """The same elements as integers of the same width."""
    import torch

    of_width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.view(of_width[t.element_size()])


def to_double(t: torch.Tensor) -> torch.Tensor:
    """Values in float64 (packed types: their bytes)."""
    return (as_bits(t) if is_packed(t) else t).double()


def classes(t: torch.Tensor) -> torch.Tensor:
    """FINITE, NAN, POS_INF or NEG_INF for each element, as uint8."""
    import torch

    out = torch.zeros(t.shape, dtype=torch.uint8)
    if t.dtype.is_floating_point and not is_packed(t):
        # Every float type up to 32 bits is exact in float32, and not all have isnan themselves.
        wide = t if t.dtype == torch.float64 else t.float()
        out[wide.isnan()] = NAN
        out[wide == torch.inf] = POS_INF
        out[wide == -torch.inf] = NEG_INF
    return out


def ordered(t: torch.Tensor) -> torch.Tensor:
    """int64 keys, monotone in value, where neighbouring floats differ by one and -0 equals +0."""
    import torch

    if t.dtype == torch.uint64:
        return t.view(torch.int64) ^ torch.iinfo(torch.int64).min
    if not t.dtype.is_floating_point or is_packed(t):
        return (as_bits(t) if is_packed(t) else t).to(torch.int64)
    if t.dtype == torch.float8_e8m0fnu:
        return as_bits(t).to(torch.int64)
    bits = as_bits(t).to(torch.int64)
    if t.element_size() == 1:
        bits = bits - 256 * (bits > 127)
    lowest = (
        torch.iinfo(torch.int64).min if t.element_size() == 8 else -(1 << t.element_size() * 8 - 1)
    )
    return torch.where(bits < 0, lowest - bits, bits)


def steps(t: torch.Tensor) -> tuple[int, ...]:
    """Strides that mean something: none of a dimension of one element, none of an empty tensor."""
    return tuple(int(s) for s, n in zip(t.stride(), t.shape) if n > 1) if t.numel() else ()
