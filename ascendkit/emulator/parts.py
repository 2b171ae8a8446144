"""A source text in two parts: vector functions, compiled as they are, and scalar and SIMT code.

Scalar and SIMT code dereferences pointers, so its accesses can only be seen where the compiler
instruments every load and store. Vector functions access memory through instructions, which report
themselves; instrumented they would be many times slower. The parts meet when they are linked.
"""

from __future__ import annotations

import re

from ascendkit.emulator.source import KERNEL

_FUNCTION = re.compile(r"^__simd_vf__\s+(?:inline\s+)?void\s+\w+\s*\([^(){};]*\)\s*\{$")


def vector(text: str) -> str:
    """``text`` with its vector functions visible to the other part, and without kernels."""
    lines = []
    inside = False
    for line in text.splitlines():
        if KERNEL.search(line):
            inside = True
        if _FUNCTION.match(line):
            line = re.sub(r"\binline\s+", "", line)
        lines.append("" if inside else line)
        inside = inside and not line.startswith("}")
    return "\n".join(lines)


def scalar(text: str) -> str:
    """``text`` with declarations in place of vector functions; line numbers stay."""
    lines = []
    inside = False
    for line in text.splitlines():
        if _FUNCTION.match(line):
            inside = True
            lines.append(re.sub(r"\binline\s+", "", line).rstrip("{ ") + ";")
            continue
        lines.append("" if inside else line)
        inside = inside and not line.startswith("}")
    return "\n".join(lines)


def has_vector(text: str) -> bool:
    """Whether anything is left for the vector part."""
    return any(_FUNCTION.match(line) for line in text.splitlines())
