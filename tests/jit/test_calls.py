"""The host backend with the machine's own compiler: arguments in, values out."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ascendkit.jit import (
    HostLaunchOptions,
    LoadError,
)

from .conftest import Make

FILL = """
#include <cstdint>
ASCENDKIT_KERNEL void fill(uint32_t block_idx, uint32_t num_blocks, int32_t* out, int64_t by) {
  out[block_idx] = static_cast<int32_t>(block_idx * by + num_blocks);
}
"""


def blocks(count: int, threads: int = 1) -> HostLaunchOptions:
    return HostLaunchOptions(num_blocks=count, num_threads=threads)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_launch(real: Make, threads: int) -> None:
    runtime = real()
    kernel = runtime.compile("fill", FILL)
    out = np.full(10, -1, dtype=np.int32)
    runtime.launch(kernel, blocks(9, threads), out, 5)
    assert out.tolist() == [5 * block + 9 for block in range(9)] + [-1]
    assert (kernel.entry, kernel.loaded) == ("fill", True)


def test_direct_call_and_symbols(real: Make) -> None:
    kernel = real().compile("f", "ASCENDKIT_KERNEL long f(long a, double b) { return a; }")
    assert kernel(41, ctypes.c_double(0)) == 41
    symbol = kernel.symbol("f")
    symbol.restype = ctypes.c_int64
    assert symbol(ctypes.c_int64(1 << 40), ctypes.c_double(0)) == 1 << 40
    with pytest.raises(LoadError, match=r"exports no 'g'"):
        kernel.symbol("g")


class Two(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int32),)


class Mixed(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double))


class Large(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double * 127))


MIXED = """
#include <cstdint>
struct Mixed { int8_t a; double b; };
struct Large { int8_t a; double b[127]; };
ASCENDKIT_KERNEL void mixed(uint32_t block, uint32_t, double* out, int8_t a, float b, int64_t c,
                            double d, const Mixed* p, bool e, const char* null, uint64_t big,
                            int16_t f, double g, Large h) {
  double values[] = {double(a), b, double(c), d, double(p->a), p->b, double(e),
                     double(null == nullptr), double(big), double(f), g, double(h.a), h.b[126]};
  for (double v : values) *out++ = v;
}
"""


def test_mixed_arguments(real: Make) -> None:
    runtime = real()
    out = np.zeros(13)
    large = Large(-5)
    large.b[126] = 6.5
    arguments = [ctypes.c_int8(-3), ctypes.c_float(1.5), -(1 << 40), ctypes.c_double(2.25)]
    arguments += [ctypes.pointer(Mixed(7, 8.5)), True, None, 1 << 63, ctypes.c_int16(-9)]
    arguments += [ctypes.c_double(1e300), large]
    runtime.launch(runtime.compile("mixed", MIXED), blocks(1), out, *arguments)
    expected = [-3, 1.5, -(1 << 40), 2.25, 7, 8.5, 1, 1, 2.0**63, -9, 1e300, -5, 6.5]
    assert out.tolist() == expected


def test_structures_that_calls_may_damage(real: Make) -> None:
    """Without the check, libffi 3.4.4 passes 0 for the float before such a structure."""
    runtime = real()
    kernel = runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 1; }")
    nested = type(
        "Nested", (ctypes.Structure,), {"_fields_": (("m", ctypes.c_float * 3), ("i", Two))}
    )
    for value in (Mixed(1, 2.0), nested()):
        with pytest.raises(TypeError, match=r"pass ctypes.pointer"):
            kernel(value)
        with pytest.raises(TypeError, match=r"pass ctypes.pointer"):
            runtime.launch(kernel, blocks(1), value)
    assert kernel(Two(1)) == 1


@pytest.mark.parametrize("literal", ["0x1.8p-3", "-0.0", "0x1p-1074", "1e308", "0x1.fffffep127f"])
def test_float_literals_arrive_exactly(real: Make, literal: str) -> None:
    source = f"ASCENDKIT_KERNEL void f(unsigned, unsigned, double* out) {{ *out = {literal}; }}"
    out = np.full(1, np.nan)
    runtime = real()
    runtime.launch(runtime.compile("f", source), blocks(1), out)
    text = literal.rstrip("f") if "p127" in literal else literal
    value = float.fromhex(text) if "0x" in text else float(text)
    assert out.tobytes() == np.array([value]).tobytes()
