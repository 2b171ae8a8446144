"""Every name that the installed TileLang can emit for Ascend, read from its own files.

Two places print names: the code templates (expanded by the host compiler, so that names glued by
macros appear) and the string literals of the code generator. A literal that ends in ``_`` or in a
width stem is completed by the table below; a stem the table does not know is reported as it stands.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

from ascendkit.emulator import toolchain

_TEMPLATES = [
    "common",
    "debug",
    "simd_inst",
    "gemm",
    "reduce",
    "nd2nz_copy",
    "dcache_bypass",
    "philox_rng",
    "ascend_fp8",
]
_NAME = re.compile(r"\basc_[a-z0-9_]+\b")
_ATOMIC_TYPES = ("float", "float16", "bfloat", "int8", "int16", "int32")
_COMPLETIONS: dict[str, tuple[str, ...]] = {
    "asc_sync_": tuple(
        f"asc_sync_{scope}_{end}"
        for scope, end in product(("inter", "subblock", "block", "intra"), ("arrive", "wait"))
    ),
    "asc_create_mask_b": tuple(f"asc_create_mask_b{w}" for w in (8, 16, 32)),
    "asc_update_addr_reg_b": tuple(f"asc_update_addr_reg_b{w}" for w in (8, 16, 32)),
    "asc_set_mmad_direction_": ("asc_set_mmad_direction_m", "asc_set_mmad_direction_n"),
    "asc_atomic_": ("asc_atomic_add", "asc_atomic_max", "asc_atomic_min"),
    **{
        f"asc_set_atomic_{op}": tuple(f"asc_set_atomic_{op}_{t}" for t in _ATOMIC_TYPES)
        for op in ("add", "max", "min")
    },
}
# Type names, not instructions.
_TYPES = {
    "asc_load_l2_cache_mode",
    "asc_store_l2_cache_mode",
    "asc_unit_flag_mode",
    "asc_quant_mode",
    "asc_relu_pre_mode",
    "asc_dual_dst_mode",
    "asc_hf32_round_mode",
    "asc_reduce",
    "asc_simd",
    "asc_simt",
    "asc_fp8",
    "asc_fp16",
    "asc_bf16",
}


def _preprocessed(unit: str, wanted: str) -> str:
    """Lines of ``unit`` after macro expansion that come from files whose path holds ``wanted``."""
    command = [
        str(toolchain.compiler_path()),
        *("-std=c++20", "-E", "-x", "c++"),
        f"-I{toolchain.HERE / 'include'}",
        f"-I{toolchain.template_root()}",
        "-",
    ]
    text = subprocess.run(command, input=unit, capture_output=True, text=True, check=True).stdout
    lines = []
    inside = False
    for line in text.splitlines():
        if line.startswith("# "):
            inside = wanted in line
        elif inside:
            lines.append(line)
    return "\n".join(lines)


@cache
def from_templates() -> frozenset[str]:
    """``asc_*`` names in the templates after macro expansion."""
    unit = "".join(f"#include <tl_templates/ascend/{t}.h>\n" for t in _TEMPLATES)
    return frozenset(_NAME.findall(_preprocessed(unit, "tl_templates/ascend"))) - _TYPES


@cache
def declared() -> frozenset[str]:
    """Identifiers in the emulator's own headers after macro expansion."""
    text = _preprocessed("#include <simt_api/asc_simt.h>\n", "emulator/include")
    return frozenset(re.findall(r"\w+", text))


@cache
def from_codegen() -> frozenset[str]:
    """``asc_*`` names that the code generator's string literals can spell."""
    names: set[str] = set()
    for file in sorted((toolchain.template_root() / "ascend" / "codegen").glob("*.cc")):
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', file.read_text()):
            for name in _NAME.findall(literal):
                names.update(_COMPLETIONS.get(name, (name,)))
    return frozenset(names - _TYPES)


@cache
def merging_calls() -> frozenset[str]:
    """The ``::v*`` calls: every ``T.simd`` operation with a write mode."""
    folder = toolchain.template_root().parent / "ascend" / "language" / "simd.py"
    found = set()
    for name, body in re.findall(r"^def (v\w+)\((.*?)\):", folder.read_text(), re.M | re.S):
        if "mode=" in body:
            found.add("vdup" if name == "vdupv" else name)
    return frozenset(found)


@cache
def math_names() -> frozenset[str]:
    """Scalar math names: NAMEf and hNAME of every registered function."""
    rule = toolchain.template_root() / "ascend" / "codegen" / "intrin_rule_ascend.cc"
    stems = re.findall(r'REGISTER_ASCEND_INTRIN\("(\w+)"\)', rule.read_text())
    return frozenset({f"{s}f" for s in stems} | {f"h{s}" for s in stems})


def all_names() -> frozenset[str]:
    """Everything above."""
    return from_templates() | from_codegen() | merging_calls() | math_names()


def used_in(text: str) -> set[str]:
    """Instruction names a generated source uses directly: ``asc_*``, ``::v*`` and math."""
    names = set(_NAME.findall(text)) - _TYPES
    names.update(n for n in re.findall(r"(?<![\w:])::(v\w+)\(", text))
    names.update(n for n in re.findall(r"\b(\w+)\(", text) if n in math_names())
    return names


def template_root() -> Path:
    """Where the names were read."""
    return toolchain.template_root()
