"""Kernel arguments: Python values to C values, and C values to a packed buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

Value = Any
"""A ctypes instance; ctypes keeps its common base class private."""

_CDATA = ctypes.c_int.__mro__[-2]
_FLOATING = {"f", "d"}
_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)


def as_ctypes(value: object) -> Value:
    """One argument as a ctypes value.

    bool and int become 8-bit and 64-bit values, None a null pointer, a tensor (``data_ptr``) or an
    array (``__array_interface__``, ``ctypes.data``) the address of its data; ctypes values pass.

    Raises:
        TypeError: no C type follows from the value. A float is such a value: C kernels take both
            float and double, so say ``ctypes.c_float(x)`` or ``ctypes.c_double(x)``.
        ValueError: an integer beyond 64 bits.
    """
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    if isinstance(value, int):
        return _integer(value)
    if value is None:
        return ctypes.c_void_p()
    if isinstance(value, _CDATA):
        return value
    pointer = getattr(value, "data_ptr", None)
    if callable(pointer):
        return ctypes.c_void_p(pointer())
    interface = getattr(value, "__array_interface__", None)
    # NumPy scalars have the interface too, but of a copy that dies at once.
    if isinstance(interface, dict) and hasattr(value, "ctypes"):
        return ctypes.c_void_p(interface["data"][0])
    hint = "; say ctypes.c_float(x) or ctypes.c_double(x)" if isinstance(value, float) else ""
    raise TypeError(
        f"kernel argument: got {type(value).__name__}, wanted int, bool, None, a tensor, an array"
        f" or a ctypes value{hint}"
    )


def check_by_value(value: Value) -> Value:
    """Refuse a structure that this machine's call interface may damage; returns ``value``.

    On x86-64, libffi before 3.4.7 overwrites another argument when a structure of 9 to 16 bytes,
    partly integer and partly floating point, meets the last integer register.

    Raises:
        TypeError: such a structure.
    """
    if isinstance(value, (ctypes.Structure, ctypes.Union)) and 8 < ctypes.sizeof(value) <= 16:
        codes = set(_codes(type(value)))
        if codes & _FLOATING and codes - _FLOATING:
            raise TypeError(
                f"kernel argument: got a {type(value).__name__} by value, integer and floating"
                " point mixed in 16 bytes, which libffi may pass wrongly; pass ctypes.pointer(x)"
            )
    return value


def pack(values: Iterable[object], *, least: int = 4, multiple: int = 8) -> bytes:
    """Arguments as one buffer: each at its natural alignment, but at least ``least`` bytes.

    The total is padded to a ``multiple`` of bytes. This is how device launchers take arguments.
    """
    buffer = bytearray()
    for value in map(as_ctypes, values):
        buffer.extend(bytes(-len(buffer) % max(least, ctypes.alignment(value))))
        buffer.extend(bytes(value))
    buffer.extend(bytes(-len(buffer) % multiple))
    return bytes(buffer)


def _codes(kind: Any) -> Iterator[str]:
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        for row in kind._fields_:
            yield from _codes(row[1])
    elif issubclass(kind, ctypes.Array):
        yield from _codes(kind._type_)
    else:
        yield str(getattr(kind, "_type_", "P"))


def _integer(value: int) -> Value:
    if value in _INT64:
        return ctypes.c_int64(value)
    if value in _UINT64:
        return ctypes.c_uint64(value)
    raise ValueError(f"kernel argument: got {value}, wanted an integer of at most 64 bits")
