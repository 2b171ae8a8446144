"""Tensors as global memory: address, extent, and the checks before they are handed over."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ascendkit.emulator.device import Region
from ascendkit.errors import bad_type

if TYPE_CHECKING:
    import torch

_FORMATS = {
    "bool": "?",
    "int8_t": "b",
    "uint8_t": "B",
    "int16_t": "h",
    "uint16_t": "H",
    "int": "i",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
    "float": "f",
    "double": "d",
    "half": "e",
}
"""struct codes of the C types of parameters."""


_FLOATS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16_t": "bfloat16"}


def check_dtype(name: str, ctype: str, tensor: torch.Tensor) -> None:
    """A pointer to ``ctype`` takes elements of that type, an integer one both signs; bytes (int8,
    uint8, bool, 8-bit floats) may stand for anything.

    Raises:
        TypeError: another floating-point format, an integer for a float, or another width.
    """
    got, size = str(tensor.dtype).removeprefix("torch."), tensor.element_size()
    if size == 1 or ctype not in {*_FORMATS, *_FLOATS}:
        return
    if ctype in _FLOATS:
        if got != _FLOATS[ctype]:
            raise TypeError(f"{name}: got {got}, wanted {_FLOATS[ctype]} for {ctype}*")
    elif tensor.is_floating_point() or size != struct.calcsize(_FORMATS[ctype]):
        bits = 8 * struct.calcsize(_FORMATS[ctype])
        raise TypeError(f"{name}: got {got}, wanted integers of {bits} bits for {ctype}*")


def region(name: str, tensor: torch.Tensor) -> Region:
    """The whole storage behind ``tensor``: a view may be strided, its kernel may address the gaps.

    Raises:
        TypeError: not a CPU tensor.
    """
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise bad_type(name, tensor, "a torch tensor")
    if tensor.device.type != "cpu":
        raise TypeError(
            f"{name}: got a tensor on {tensor.device}, wanted cpu: the emulator runs on this CPU"
        )
    storage = tensor.untyped_storage()
    return Region(name, storage.data_ptr(), storage.nbytes())


def imagined(name: str, tensor: torch.Tensor, others: Sequence[Region]) -> Region:
    """An address range for a tensor without memory, after all ``others``."""
    past = max((r.base + r.bytes for r in others), default=0)
    base = max(1 << 44, (past + 4096) // 512 * 512)
    return Region(name, base, tensor.untyped_storage().nbytes())


def scalar_bytes(ctype: str, value: Any) -> bytes:
    """``value`` as the eight-byte slot of a scalar parameter of C type ``ctype``.

    Raises:
        TypeError: a type the kernel interface does not have.
    """
    if ctype == "bfloat16_t":
        import torch

        bits = torch.tensor(float(value), dtype=torch.bfloat16).view(torch.int16).item()
        return struct.pack("h6x", int(bits))
    code = _FORMATS.get(ctype)
    if code is None:
        raise TypeError(f"scalar parameter of type {ctype}: wanted one of {', '.join(_FORMATS)}")
    try:
        return struct.pack("<" + code, value).ljust(8, b"\0")
    except struct.error as error:
        raise TypeError(f"scalar parameter of type {ctype}: got {value!r}: {error}") from None
