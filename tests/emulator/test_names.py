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


def test_the_headers_declare_every_name_of_the_table():
    c_library = {n for n in emittable.math_names() if n.endswith("f")} | {"sincosf"}
    macros = {"ASC_IS_AIC", "ASC_IS_AIV", "printf", "assert"}
    theirs = {
        s.symbol
        for s in instructions.table().values()
        if s.symbol.startswith(("debug_", "device_"))
    }
    wanted = instructions.symbols() - c_library - macros - theirs
    assert sorted(wanted - emittable.declared()) == []


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
    assert len(used) > 15
    assert sorted(used - instructions.symbols()) == []


def test_the_repository_uses_known_names_only(monkeypatch, seed):
    """One smoke case of every op that has a kernel for Ascend, run here, its sources read."""
    from ascendkit.check.correctness import check_case
    from ascendkit.check.outcome import FAIL
    from ascendkit.check.plan import make
    from ascendkit.emulator.lowered import LoweredKernel

    sources: list[str] = []
    lowered = LoweredKernel.__init__

    def recording(self, *args, **kwargs):
        lowered(self, *args, **kwargs)
        sources.append(self.kernel_source)

    monkeypatch.setattr(LoweredKernel, "__init__", recording)
    seen: set[str] = set()
    for job in make("all", "all", "emulator", "smoke", "correctness").correctness:
        if job.platform == "emulator" and job.op.name not in seen:
            seen.add(job.op.name)
            assert check_case(job.op, job.platform, job.case, seed).status != FAIL, job
    assert seen and sources
    used = set().union(*map(emittable.used_in, sources))
    assert sorted(used - instructions.symbols()) == []
