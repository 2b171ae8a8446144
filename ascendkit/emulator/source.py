"""Reading generated AscendC: its kernels, and the text the host compiler gets instead.

Three things are rewritten, all on the same line so that line numbers stay: integer addresses of the
unified buffer become host addresses, calls of vector functions go through the vector pipe, and
every statement that can fail notes its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascendkit.emulator.errors import SourceError

VECTOR, CUBE, MIXED = range(3)

KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+(__vector__|__cube__|__mix__\s*\(\s*1\s*,\s*2\s*\))\s+'
    r"void\s+(\w+)\s*\(([^)]*)\)\s*\{"
)
_VECTOR_FUNCTION = re.compile(r"__simd_vf__\s+(?:inline\s+)?void\s+(\w+)\s*\(")
_NULL_UB = re.compile(r"\(\s*(__ubuf__\s+[\w:]+\s*\*)\s*\)\s*(0(?:x[0-9a-fA-F]+)?|[1-9]\d*)\b")
_SCATTER = re.compile(r"\bascend_nd2nz_scatter(<[^;(]*>)\(")
_STATEMENT = re.compile(
    r"^\s*(?!__)(?:asc_\w+|simd_inst::|sprsts|AscendC::|\w+_simd_vf_\w+|ascend_\w+|tl::|device_assert\w*|assert)\b.*\("
)
_ACCESS = re.compile(r"^\s+(?:[\w*]+\s.*=|\(?\(?\*?\(?\(?__|[\w]+\[).*;\s*$")
_DEREFERENCE = re.compile(r"^\s.*(?:[\w)]\[|\*\s*\(|->)")
_SIMT = re.compile(r"\b__simt_(?:vf|callee)__\b")
_COLLECTIVE = re.compile(
    r"\basc_(?:shfl_xor|reduce_(?:add|max|min)|ballot|activemask)\(|"
    r"\bAscendAllReduce\b|\bcoalesced_threads\(\)"
)
# What hand-written helpers may take from the class library.
_LIBRARY = {"DEFAULT_SORT_CONFIG", "GetSsbufBaseAddr", "LocalTensor", "Sort", "TPosition"}
_KINDS = {"__vector__": VECTOR, "__cube__": CUBE}


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter: its C type without address space, and whether it is a pointer."""

    name: str
    ctype: str
    pointer: bool


@dataclass(frozen=True)
class Kernel:
    """One ``__global__`` function of a source text."""

    name: str
    kind: int
    parameters: tuple[Parameter, ...]


def check(text: str) -> None:
    """Raise SourceError for text that is not AscendC of TileLang's Ascend 950 generator."""
    foreign = sorted(set(re.findall(r"\bAscendC::(\w+)", text)) - _LIBRARY)
    if foreign or ("kernel_operator.h" in text and "tl_templates/ascend/common.h" not in text):
        names = ", ".join(f"AscendC::{name}" for name in foreign) or "kernel_operator.h"
        raise SourceError(
            f"the source uses {names} of CANN's class library, of which the emulator has only "
            f"{', '.join(sorted(_LIBRARY))}: generate it with TileLang's own target "
            '"ascend" (Ascend 950, C API)'
        )
    if "tl_templates/cuda" in text or "cuda_runtime" in text or "<<<" in text:
        raise SourceError('this is CUDA source, wanted AscendC: lower with target="ascend"')
    if "tl_templates/ascend/common.h" not in text:
        raise SourceError(
            "the source does not include tl_templates/ascend/common.h: wanted AscendC as "
            'tilelang.lower(..., target="ascend", enable_device_compile=False) prints it'
        )
    other = re.search(r"dav[-_]?(?!3510)\d{4}|__NPU_ARCH__\s*==\s*(?!3510)\d+", text)
    if other:
        raise SourceError(f"the source is for {other.group(0)}, wanted dav-3510 (Ascend 950)")


def head_line(text: str, name: str) -> int:
    """The line on which the kernel ``name`` begins, 0 if there is none."""
    heads = (m for m in KERNEL.finditer(text) if m[2] == name)
    return next((text.count("\n", 0, m.start()) + 1 for m in heads), 0)


def kernels(text: str) -> dict[str, Kernel]:
    """The kernels of ``text`` by name, in order. Raises SourceError if there is none."""
    check(text)
    found = {}
    for match in KERNEL.finditer(text):
        kind = _KINDS.get(match.group(1), MIXED)
        parameters = tuple(_parameter(p) for p in match.group(3).split(",") if p.strip())
        found[match.group(2)] = Kernel(match.group(2), kind, parameters)
    if not found:
        raise SourceError('no kernel found: wanted extern "C" __global__ __vector__ void f(...)')
    return found


def _parameter(text: str) -> Parameter:
    plain = re.sub(r"\b(__gm__|__restrict__|const|__grid_constant__)\b", " ", text)
    match = re.fullmatch(r"\s*(.+?)\s*(\*?)\s*(\w+)\s*", plain.replace("*", " * "))
    if match is None:
        raise SourceError(f"cannot read the kernel parameter {text.strip()!r}")
    return Parameter(match.group(3), " ".join(match.group(1).split()), bool(match.group(2)))


def reads_pointers(text: str) -> bool:
    """Whether a kernel takes tensors from a table of addresses (``T.make_tensor``)."""
    return re.search(r"\(\*\(__gm__ [\w:]+ \*\s*\*\)\(&\(", text) is not None


def rewrite(
    text: str, kernel: Kernel, *, trace: bool, raw: bool = False, entry: bool = True
) -> str:
    """The translation unit of one kernel: ``text`` adapted, and a C entry point.

    ``raw``: every statement that may dereference a pointer notes its line, too.
    """
    vector_functions = set(_VECTOR_FUNCTION.findall(text))
    lines = []
    in_kernel = in_simt = in_helper = False
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        if KERNEL.search(line):
            in_kernel = True
            # From here on a call of a vector function means: run it on the vector pipe.
            lines.append(" ".join([*map(_wrapper, sorted(vector_functions)), line.strip()]))
            continue
        line = _NULL_UB.sub(r"((\1)(::ak::ub() + \2))", line)
        statement = _STATEMENT.match(line)
        line = _SCATTER.sub(
            r"::ak::simd_vf([](auto... a) { ascend_nd2nz_scatter\1(a...); }, ", line
        )
        noted = statement or (trace and _ACCESS.match(line) and "(" in line)
        if raw and (in_kernel or in_simt or in_helper) and not noted:
            noted = _DEREFERENCE.search(line) and _starts_statement(line, previous)
        if noted and (in_kernel or trace):
            # The compiler does not know that the hooks of raw accesses read the line.
            keep = 'asm volatile("" ::: "memory"); ' if raw else ""
            line = f"::ak::site = {number}; {keep}{line.lstrip()}"
        if in_simt and _COLLECTIVE.search(line) and _starts_statement(line, previous):
            # Lanes that took different branches meet again by line.
            line = f"::ak::simt_line({number}); {line.lstrip()}"
        lines.append(line)
        previous = line.strip() or previous
        ends = line.startswith("}")
        in_simt = (in_simt or bool(_SIMT.search(line))) and not ends
        in_helper = (in_helper or line.startswith("__aicore__")) and not ends
        if line.startswith("}"):
            in_kernel = False
    return "\n".join([*_with_line_breaks(lines), *([_entry(kernel)] if entry else []), ""])


def _starts_statement(line: str, previous: str) -> bool:
    return previous.endswith(("{", "}", ";")) and not re.match(r"\s*(?:\}|else\b|case\b|#)", line)


def _wrapper(name: str) -> str:
    return f"#define {name}(...) ::ak::simd_vf([](auto... a) {{ {name}(a...); }}, __VA_ARGS__)\n"


def _with_line_breaks(lines: list[str]) -> list[str]:
    """Macro definitions need lines of their own; #line puts the numbering right again."""
    out: list[str] = ['#line 1 "kernel.asc"']
    for number, line in enumerate(lines, 1):
        if line.startswith("#define"):
            *defines, last = line.split("\n")
            out += [d.strip() for d in defines]
            out += [f'#line {number} "kernel.asc"', last.strip()]
        else:
            out.append(line)
    return out


def _entry(kernel: Kernel) -> str:
    args = ", ".join(
        f"*static_cast<{p.ctype}{' *' if p.pointer else ''} *>(a[{i}])"
        for i, p in enumerate(kernel.parameters)
    )
    return f"ASCENDKIT_KERNEL void ak_entry(void **a) {{ {kernel.name}({args}); }}"
