"""The examples of the codes: as a text to copy, and many in one kernel to compile once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from ascendkit.emulator.findings.codes import Code

FLOATS = 256
"""Elements of each of the two tensors that an example gets."""
_HEADS = {"vector": "__vector__", "mixed": "__mix__(1, 2)"}
_INCLUDES = "#include <tl_templates/ascend/common.h>\n#include <tl_templates/ascend/debug.h>\n"
_START = "  asc_init();\n  __ubuf__ float *ub = (__ubuf__ float *)0;\n"


def _includes(text: str) -> str:
    simd = "#include <tl_templates/ascend/simd_inst.h>\n" if "simd_inst::" in text else ""
    return _INCLUDES + simd


def _head(kind: str, more: str = "") -> str:
    core = _HEADS.get(kind, _HEADS["vector"])
    return (
        f'extern "C" __global__ {core} void example(__gm__ float* x, __gm__ float* y, int32_t n'
        f"{more}) {{\n"
    )


def text(code: Code) -> str:
    """The example as a source of its own, empty if there is none."""
    example = code.example
    if example.kind == "none":
        return ""
    if example.kind == "python":
        return python_text(code)
    functions = example.functions + "\n" if example.functions else ""
    kernel = _head(example.kind) + _START + indent(example.body, "  ") + "}\n"
    return _includes(functions + example.body) + functions + kernel


def together(codes: Sequence[Code], kind: str) -> str:
    """One source with every example of ``kind``; its last argument chooses, by position."""
    chosen = of_kind(codes, kind)
    functions = "".join(c.example.functions + "\n" for c in chosen if c.example.functions)
    cases = "".join(
        f"    case {i}: {{\n{indent(c.example.body, ' ' * 6)}      break;\n    }}\n"
        for i, c in enumerate(chosen)
    )
    kernel = _head(kind, ", int32_t which") + _START + f"  switch (which) {{\n{cases}  }}\n}}\n"
    return _includes(functions + cases) + functions + kernel


def of_kind(codes: Sequence[Code], kind: str) -> list[Code]:
    """Codes whose example is of ``kind``, in order."""
    return [c for c in codes if c.example.kind == kind]


def run(codes: Sequence[Code], kind: str) -> Iterator[tuple[Code, Any]]:
    """Check every example of ``kind`` in one compiled kernel: code and its CheckResult."""
    import torch

    from ascendkit.emulator.findings.checking import check
    from ascendkit.emulator.kernel import EmulatedKernel

    chosen = of_kind(codes, kind)
    if not chosen:
        return
    kernel = EmulatedKernel(together(codes, kind))
    for i, code in enumerate(chosen):
        x, y = torch.ones(FLOATS), torch.zeros(FLOATS)
        options = {"timeout_s": 5.0, **code.example.options}
        yield code, check(kernel, x, y, 0, i, grid=code.example.blocks, **options)


def module(code: Code, folder: Path) -> Any:
    """The Python example of ``code`` as a module; TileLang reads kernels from files."""
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    name = "example_" + code.code.lower().replace("-", "_")
    path = folder / f"{name}.py"
    path.write_text(python_text(code), encoding="utf-8")
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def python_text(code: Code) -> str:
    """The Python example with its imports."""
    return (
        "import tilelang\nfrom tilelang.ascend import language as T\n"
        "from tilelang.ascend.language import simd as S\n\n\n" + code.example.body
    )
