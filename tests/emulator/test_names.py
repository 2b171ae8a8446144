"""Every name TileLang can emit is known; the generated pages are the table's."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

from ascendkit.emulator import emittable, instructions, pages
from tests.emulator import kernels

pytestmark = pytest.mark.emu


def test_nothing_that_tilelang_can_emit_is_unknown():
    names = emittable.all_names()
    assert len(names) > 250  # an extractor that finds nothing would pass otherwise
    assert sorted(names - instructions.symbols()) == []


def test_the_extractor_sees_macros_and_completed_stems():
    assert "asc_loadalign_unpack4_postupdate" in emittable.from_templates()
    assert {"asc_sync_inter_wait", "asc_set_atomic_min_bfloat"} <= emittable.from_codegen()
    assert "vdup" in emittable.merging_calls() and "hatan2" in emittable.math_names()


def test_every_name_of_the_table_that_code_can_call_is_declared():
    """The table promises nothing that the headers do not have."""
    include = emittable.toolchain.HERE / "include"
    text = "".join(p.read_text() for p in include.rglob("*.h"))
    for macro_made in ("asc_sync_", "asc_set_atomic_", "asc_shift"):
        assert macro_made in text
    missing = [
        one.symbol
        for one in instructions.table().values()
        if one.symbol.startswith("asc_") and not _declared(one.symbol, text)
    ]
    assert missing == []


def _declared(name: str, text: str) -> bool:
    if name in text:
        return True
    # Names glued from a stem and a suffix by a macro: both halves must stand in the headers.
    parts = name.removeprefix("asc_").split("_")
    return all(part in text for part in parts)


@pytest.mark.parametrize("path", sorted(pages.files()), ids=lambda p: p.name)
def test_generated_pages_are_fresh(path):
    assert path.read_text(encoding="utf-8") == pages.files()[path], (
        "run: python -m ascendkit.emulator pages"
    )


def test_every_instruction_names_a_source_and_a_meaning():
    for one in instructions.table().values():
        assert one.sources and one.semantics and one.confidence in instructions.CONFIDENCE


def test_kernels_of_these_tests_use_known_names_only():
    """Lowers what it can without arguments: the shapes come from the tests that run them."""
    from ascendkit.emulator.lowered import LoweredKernel

    samples = {
        "gemm": [
            ("gemm_l0", (64, 64, 64, "bfloat16")),
            ("gemm_mx", (64, 64, 128, "float8_e4m3fn")),
        ],
        "mixed": [("gemm_relu_scale", (64, 64, 64)), ("scale_then_rank", (2, 64))],
        "attention": [("flash_attention", (1, 64, 64))],
    }
    modules = {m.name for m in pkgutil.iter_modules(kernels.__path__)}
    assert set(samples) <= modules
    used: set[str] = set()
    for module, rows in samples.items():
        found = importlib.import_module(f"tests.emulator.kernels.{module}")
        for name, args in rows:
            assert inspect.isfunction(getattr(found, name))
            used |= emittable.used_in(LoweredKernel(getattr(found, name)(*args)).kernel_source)
    assert len(used) > 30
    assert sorted(used - instructions.symbols()) == []
