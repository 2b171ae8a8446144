"""C++ text for addresses in a row's memory."""

from __future__ import annotations

from tests.emulator.harness import CTYPE

ALL = "asc_create_mask_b8(PAT_ALL)"


def at(kind: str, byte: int, memory: str = "p0") -> str:
    """A typed pointer into a row's memory."""
    return f"(__ubuf__ {CTYPE[kind]} *)({memory} + {byte})"


def moved(pointer: str, kind: str, output: str, memory: str = "p0") -> str:
    """Reports, as an output register, how many elements a pointer lies behind the row's start."""
    distance = f"static_cast<int32_t>({pointer} - {at(kind, 0, memory)})"
    return f" asc_duplicate_scalar({output}, {distance}, {ALL});"
