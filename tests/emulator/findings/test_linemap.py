"""Lines of generated source lead back to the Python statement that they came from."""

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

pytest.importorskip("tilelang")

from ascendkit.emulator import origins, samples
from ascendkit.emulator.lowered import LoweredKernel, ascend_target
from tests.emulator.kernels import attention, mixed, vector

HERE = Path(__file__).parent.parent / "kernels"

KERNELS = {
    "add": (samples, lambda: samples.add.get_tir(8192)),
    "matmul": (samples, lambda: samples.matmul.get_tir(256, 256, 256)),
    "scale_rows": (vector, lambda: vector.scale_rows.get_tir(256)),
    "not_equal": (vector, lambda: vector.not_equal.get_tir(256)),
    "mixed": (mixed, lambda: mixed.gemm_relu_scale(128, 192, 128)),
    "simd_and_simt": (mixed, lambda: mixed.scale_then_rank(8, 64)),
    "attention": (attention, lambda: attention.flash_attention(1, 64, 128)),
}
# A generated call, and a word of each Python line that may lead to it.
MADE_BY = {
    "asc_copy_gm2ub": ("T.copy(", "T.dual_copy("),
    "asc_copy_ub2gm": ("T.copy(", "T.dual_copy("),
    "asc_copy_gm2l1": ("T.copy(",),
    "asc_copy_l12l0": ("T.copy(",),
    "asc_copy_l0c2": ("T.copy(", "T.dual_copy("),
    "asc_copy_ub2l1": ("T.dual_copy(", "T.copy("),
    "ascend_gemm_l1": ("T.gemm(",),
    "asc_mmad": ("T.gemm(",),
    "simd_inst::vsts": ("S.vsts(", "] = "),
    "simd_inst::vlds": ("S.vld(", "S.vsts(", "] = "),
    "_simd_vf_": ("T.SimdVF()", "for ", "S.vsts("),
}


def lowered(name):
    module, make = KERNELS[name]
    with ascend_target():
        return module, LoweredKernel(make())


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_leads_to_the_statement_that_made_it(name):
    module, kernel = lowered(name)
    rows = Path(inspect.getfile(module)).read_text().splitlines()
    seen = 0
    for number, text in enumerate(kernel.kernel_source.splitlines(), 1):
        if "inline void" in text:
            continue
        origin = kernel.origins.at(number)
        for call, words in MADE_BY.items():
            if text.strip().startswith(call) or f" {call}" in text or f"({call}" in text:
                assert origin is not None, text
                assert Path(origin.file).name == Path(inspect.getfile(module)).name
                found = rows[origin.line - 1]
                assert any(word in found for word in words), (text, found)
                seen += 1
                break
    assert seen >= 3


@pytest.mark.parametrize("name", KERNELS)
def test_inserted_synchronisation_lies_between_two_statements(name):
    _, kernel = lowered(name)
    found = 0
    for number, text in enumerate(kernel.kernel_source.splitlines(), 1):
        if text.strip().startswith(("asc_sync_notify", "asc_sync_wait", "asc_sync_intra")):
            assert kernel.origins.at(number) is None, text
            around = kernel.origins.around(number)
            assert around and {o.how for o in around} <= {"before", "after"}
            found += 1
    assert found


def test_the_copy_and_the_loop_of_the_add_kernel_exactly():
    module, kernel = lowered("add")
    text = inspect.getsource(module)
    where = {
        word: next(n for n, row in enumerate(text.splitlines(), 1) if word in row)
        for word in ("T.copy(a[", "T.copy(b[", "x[i] = x[i]", "T.copy(x, c[", "T.SimdVF()")
    }
    source = kernel.kernel_source.splitlines()

    def line_of(snippet):
        number = next(n for n, row in enumerate(source, 1) if snippet in row)
        return kernel.origins.at(number).line

    assert line_of("(&(a[") == where["T.copy(a["]
    assert line_of("(&(b[") == where["T.copy(b["]
    assert line_of("vsts_norm") == where["x[i] = x[i]"]
    assert line_of("  add_kernel_kernel_simd_vf_0(") == where["T.SimdVF()"]
    assert line_of("asc_copy_ub2gm") == where["T.copy(x, c["]


def test_equal_functions_in_different_places_share_an_entry_and_keep_their_own_lines(tmp_path):
    body = Path(inspect.getfile(samples)).read_text()
    kernels = []
    for name, blank in (("one", 0), ("two", 7)):
        path = tmp_path / f"kernels_{name}.py"
        path.write_text(body.replace("@tilelang.jit", "\n" * blank + "@tilelang.jit", 1))
        spec = importlib.util.spec_from_file_location(f"kernels_{name}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        with ascend_target():
            kernels.append(LoweredKernel(module.add.get_tir(4096)))
    one, two = (k.origins for k in kernels)
    assert kernels[0].kernel_source == kernels[1].kernel_source
    assert one.lines == two.lines
    assert {n: one.at(n).line + 7 for n in one.lines} == {n: two.at(n).line for n in two.lines}
    assert one.at(max(one.lines)).file.endswith("kernels_one.py")


def test_a_source_that_prints_otherwise_is_unknown():
    marked = "  ascendkit_origin(1005, 0);\n  a();\n"
    assert origins.read_marks(marked, "  a();\n", {}) == {1: (1005, True)}
    assert origins.read_marks(marked, "  b();\n", {}) == {}


def test_offsets_have_names():
    _, kernel = lowered("matmul")
    origins = kernel.origins
    assert origins.buffer("matmul_kernel_kernel", "L1", 0, 32) == "a_l1"
    assert origins.buffer("matmul_kernel_kernel", "L1", 65536, 65540) == "b_l1"
    assert origins.buffer("matmul_kernel_kernel", "L1", 65504, 65540) == "a_l1, b_l1"
    assert origins.buffer("matmul_kernel_kernel", "L0C", 0, 4) == "acc"
    assert origins.buffer("matmul_kernel_kernel", "L1", 131072, 131076) == ""
    assert origins.buffer("another", "L1", 0, 4) == ""
