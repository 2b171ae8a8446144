"""Kernel arguments: conversion to C and packing."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from ascendkit.jit.arguments import as_ctypes, pack


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double))


class FakeTensor:
    def data_ptr(self) -> int:
        return 0x1234


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (True, ctypes.c_bool, True),
        (-1, ctypes.c_int64, -1),
        ((1 << 63) - 1, ctypes.c_int64, (1 << 63) - 1),
        (1 << 63, ctypes.c_uint64, 1 << 63),
        ((1 << 64) - 1, ctypes.c_uint64, (1 << 64) - 1),
        (None, ctypes.c_void_p, None),
        (FakeTensor(), ctypes.c_void_p, 0x1234),
        (ctypes.c_float(1.5), ctypes.c_float, 1.5),
    ],
)
def test_kinds(value: object, kind: type, plain: object) -> None:
    converted = as_ctypes(value)
    assert type(converted) is kind
    assert converted.value == plain


def test_arrays() -> None:
    array = np.arange(4)
    assert as_ctypes(array).value == array.ctypes.data
    pair = Pair()
    pointer = ctypes.pointer(pair)
    assert as_ctypes(pair) is pair
    assert as_ctypes(pointer) is pointer


@pytest.mark.parametrize("value", [1.0, "x", b"x", [1], object(), np.float32(1), np.int64(1), 1j])
def test_no_guessing(value: object) -> None:
    with pytest.raises(TypeError, match=r"wanted int, bool, None, a tensor, an array"):
        as_ctypes(value)


def test_a_float_is_told_what_to_say() -> None:
    with pytest.raises(TypeError, match=r"c_float"):
        as_ctypes(1.5)


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_too_wide(value: int) -> None:
    with pytest.raises(ValueError, match=r"at most 64 bits"):
        as_ctypes(value)


def test_packing_mixed() -> None:
    """i8, f32, i64, f64: natural alignment, four bytes at least, the total padded to eight."""
    values = [ctypes.c_int8(-1), ctypes.c_float(2.5), 3, ctypes.c_double(4.5), ctypes.c_int16(5)]
    assert pack(values) == struct.pack("<b3xfqdh6x", -1, 2.5, 3, 4.5, 5)


@pytest.mark.parametrize(
    ("values", "layout"),
    [
        ([], ""),
        ([True], "?7x"),
        ([ctypes.c_int8(1), ctypes.c_int8(2)], "b3xb3x"),
        ([ctypes.c_int8(1), Pair(2, 3.0)], "b7xb7xd"),
        ([Pair(2, 3.0), None], "b7xdQ"),
    ],
)
def test_packed_layouts(values: list[object], layout: str) -> None:
    packed = pack(values)
    assert len(packed) == struct.calcsize("<" + layout)
    fields = struct.unpack("<" + layout, packed)
    assert len(fields) == sum(2 if isinstance(v, Pair) else 1 for v in values)


def test_packing_a_large_structure() -> None:
    kind = ctypes.c_char * 1024
    assert pack([ctypes.c_int32(7), kind(*bytes([9]) * 1024)]) == (
        struct.pack("<i", 7) + bytes([9]) * 1024 + bytes(4)
    )


def test_other_rules() -> None:
    assert pack([ctypes.c_int8(1), ctypes.c_int8(2)], least=1, multiple=1) == b"\1\2"
