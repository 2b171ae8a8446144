"""Tensors whose memory has no value yet: outputs that a launch allocates, and ``torch.empty``.

They are filled with ones (NaN in every float format, -1 in every integer) when they are made. A
byte has no value while it still holds that, torch has written nothing to its tensor, and no checked
launch has written it.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ONES = 0xFF


@dataclass
class _Fresh:
    tensor: weakref.ref[Any]
    version: int
    allocated: bool  # by a launch, as an output
    defined: Any = None  # a bool for every byte of the storage that a launch wrote


_known: dict[int, _Fresh] = {}
"""By the address of the storage; an entry goes when its tensor does."""


def mark(tensor: torch.Tensor, *, allocated: bool = False) -> None:
    """``tensor`` has just been made and holds nothing; ``allocated``: as the output of a launch."""
    import torch

    storage = tensor.untyped_storage()
    address = storage.data_ptr()
    if not storage.nbytes():
        return
    raw = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))
    raw.numpy().fill(ONES)
    entry = _Fresh(weakref.ref(tensor), tensor._version, allocated)
    _known[address] = entry
    weakref.finalize(tensor, _forget, address, entry)


def _forget(address: int, entry: _Fresh) -> None:
    if _known.get(address) is entry:
        del _known[address]


def _entry(tensor: torch.Tensor) -> _Fresh | None:
    address = tensor.untyped_storage().data_ptr()
    entry = _known.get(address)
    if entry is None:
        return None
    made = entry.tensor()
    if made is None or made._version != entry.version:
        _forget(address, entry)
        return None
    return entry


def allocated(tensor: torch.Tensor) -> bool:
    """Whether a launch made ``tensor`` as its output."""
    entry = _entry(tensor)
    return entry is not None and entry.allocated


def undefined(tensor: torch.Tensor, low: int, size: int) -> Any:
    """A mask of the bytes of [low, low + size) of the tensor's storage that have no value; None if
    all have one."""
    import torch

    entry = _entry(tensor)
    if entry is None:
        return None
    storage = tensor.untyped_storage()
    first = low - storage.data_ptr()
    raw = torch.empty(0, dtype=torch.uint8).set_(storage, first, (size,)).numpy()
    mask = raw == ONES
    if entry.defined is not None:
        mask &= ~entry.defined[first : first + size]
    return mask if mask.any() else None


def define(tensor: torch.Tensor, low: int, written: Any) -> None:
    """A launch wrote bytes of the storage: from ``low`` on those that ``written`` says."""
    import numpy as np

    entry = _entry(tensor)
    if entry is None or written is None:
        return
    storage = tensor.untyped_storage()
    if entry.defined is None:
        entry.defined = np.zeros(storage.nbytes(), dtype=bool)
    first = low - storage.data_ptr()
    entry.defined[first : first + len(written)] |= written


def forget(values: Any) -> None:
    """A launch that nobody watched had these arguments: they may have any value now."""
    if not _known:
        return
    for value in values:
        if hasattr(value, "untyped_storage") and value.device.type == "cpu":
            _known.pop(value.untyped_storage().data_ptr(), None)


def same(one: Any, two: Any) -> bool:
    """Whether two arrays of as many bytes are equal."""
    from ascendkit.emulator import toolchain

    function = toolchain.symbol("ak_same")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    return bool(function(one.ctypes.data, two.ctypes.data, one.size))


def poison(memory: Any, where: Any, kind: int) -> None:
    """Gives bytes of ``memory`` poison of that kind, those for which ``where`` is not 0 (arrays of
    bytes)."""
    from ascendkit.emulator import toolchain

    function = toolchain.symbol("ak_poison")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32]
    function(memory.ctypes.data, where.ctypes.data, memory.size, kind)


@contextmanager
def watching() -> Iterator[None]:
    """Inside the block, tensors of ``torch.empty`` and its relatives are known to hold nothing."""
    import torch
    from torch.overrides import TorchFunctionMode

    makers = {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            if func in makers and made.device.type == "cpu" and not made.is_pinned():
                with torch._C.DisableTorchFunction():
                    mark(made)
            return made

    with Mode():
        yield
