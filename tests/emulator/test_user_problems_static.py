"""Problems that users met on devices, found here without a run; tests are named after the class."""

import pytest

pytest.importorskip("tilelang")

from ascendkit.emulator import samples
from ascendkit.emulator.__main__ import main
from ascendkit.emulator.findings import fits, lint
from ascendkit.emulator.lowered import LoweredKernel, ascend_target
from tests.emulator.corpus import mixed, vector
from tests.emulator.kernels import capacity, memory

NO_SCHEDULE = {"tl.enable_auto_schedule": False}
COLUMNS, BLOCK, TRIPS = 151936, 8192, 19


def report(kernel, configs=None):
    (one,) = fits.fits(kernel, configs)
    return one, {m.space: m for m in one.memories}


@pytest.fixture(scope="module")
def rolled_and_unrolled():
    with ascend_target():
        return [capacity.row_maximum.get_tir(COLUMNS, BLOCK, static) for static in (False, True)]


def test_a_static_range_keeps_every_tile_a_rolled_one_keeps_one(rolled_and_unrolled):
    rolled, unrolled = (report(k, NO_SCHEDULE) for k in rolled_and_unrolled)

    def tiles(fit):
        return [b for b in fit.buffers if b.name == "tile"]

    assert len(tiles(rolled[0])) == 1 and len(tiles(unrolled[0])) == TRIPS
    assert rolled[1]["UB"].placed == 4 * BLOCK + 256
    assert unrolled[1]["UB"].placed == TRIPS * 4 * BLOCK + 256
    assert rolled[0].ok and not unrolled[0].ok
    # Nothing keeps them in use at once: the cure is to roll the loop, not a smaller block.
    assert unrolled[1]["UB"].live == rolled[1]["UB"].live


def test_what_tips_the_memory_over_is_named_with_its_bytes(rolled_and_unrolled):
    _, memories = report(rolled_and_unrolled[1], NO_SCHEDULE)
    assert memories["UB"].over["950"] == (
        f"tile [{7 * 4 * BLOCK}, {8 * 4 * BLOCK}) is the first buffer past {248 * 1024}"
    )
    assert memories["UB"].over["A2/A3"].startswith(f"tile [{6 * 4 * BLOCK}, ")


@pytest.mark.parametrize(
    "bits, on_950, with_simt, on_a3",
    [
        (1966848, True, False, False),  # a fused layer norm: 245856 bytes, 192 KiB available
        (4333568, False, False, False),  # an online softmax written out: 541696 bytes
        (1572864, True, True, True),
        (1572864 + 8, True, True, False),
    ],
)
def test_does_a_need_in_bits_fit_here_and_there(bits, on_950, with_simt, on_a3):
    assert fits.tiles(bits // 8) == {"950": on_950, "950 with SIMT": with_simt, "A2/A3": on_a3}


def test_versions_of_a_pipelined_buffer_are_counted():
    with ascend_target():
        fit, memories = report(samples.matmul.get_tir(256, 256, 256))
    held = {b.name: b for b in fit.buffers}
    assert (held["a_l1"].versions, held["a_l1"].bytes) == (2, 2 * 128 * 128 * 2)
    assert held["acc"].versions == 1
    assert memories["L1"].placed == memories["L1"].live == 4 * 128 * 128 * 2
    assert fit.ok and not memories["L1"].over


def test_an_overflow_that_lowering_lets_pass_is_seen():
    with ascend_target():
        fit, memories = report(samples.add.get_tir(80000, block=40000))
    assert not fit.ok and not fit.reason
    assert memories["UB"].placed == 320000
    assert "y [160000, 320000)" in memories["UB"].over["950"]


def test_an_overflow_that_lowering_refuses_is_explained_and_not_raised():
    with ascend_target():
        fit, memories = report(samples.matmul.get_tir(1024, 1024, 1024, block=512))
    assert not fit.ok and "shared.l1" in fit.reason and "524288" in fit.reason
    assert memories["L1"].live == 2 * 512 * 512 * 2
    assert {b.name for b in memories["L1"].at_peak} == {"a_l1", "b_l1"}
    assert memories["L0C"].live == 512 * 512 * 4 and "950" in memories["L0C"].over
    assert memories["L1"].peak.text.startswith("T.copy(")


def unused(kernel, configs=None):
    return [f.detail for f in lint.lint(kernel, configs) if f.code == "AK-LINT-005"]


def test_option_without_effect():
    """tilelang-ascend 1825: an option that another one must switch on does nothing, and says
    nothing."""
    kernel = vector.accumulate(4)
    assert unused(kernel, {"tl.disable_wgmma": True}) == ["tl.disable_wgmma=True"]
    # Stages are made by the scheduler alone: without it the loop asks for them in vain.
    assert unused(kernel, NO_SCHEDULE) == ["Pipelined(t, num_stages=2)"]


def test_options_that_have_an_effect_are_not_named():
    assert unused(mixed.deep_k(64, 64, 256)) == []
    assert unused(vector.softmax_rows(3)) == []


def test_buffer_versions_without_effect():
    kernel = vector.pipelined_scale(5, 64, 3)
    versions = {"annotate_buffer_versions({buf: 3})", "annotate_buffer_versions({out: 3})"}
    assert versions < set(unused(kernel, NO_SCHEDULE))
    assert not versions <= set(unused(kernel))


FACTORY = """
import tilelang
from tilelang.ascend import language as T

@tilelang.jit(target="ascend")
def make(n=1024, tile=256, depth=1):
    @T.prim_func
    def kernel(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32")):
        with T.Kernel(n // tile) as core:
            buffer = T.alloc_shared((tile,), "float32")
            T.copy(x[core * tile], buffer)
            T.copy(buffer, y[core * tile])

    return kernel
"""


def test_an_argument_of_a_factory_without_effect(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "unused_depth.py"
    path.write_text(FACTORY)
    assert main(["lint", f"{path}:make", "tile=128", "depth=3"]) == 0
    said = capsys.readouterr().out
    assert "AK-LINT-005" in said and "depth=3 (default 1)" in said and "tile=" not in said
    assert main(["lint", f"{path}:make", "tile=128", "depth=1"]) == 0
    assert "AK-LINT-005" not in capsys.readouterr().out


def test_symbolic_length_of_a_copy_is_no_template_argument():
    """tilelang-ascend 1321: a length known at run time was printed as a template argument."""
    assert [f.code for f in lint.lint(memory.symbolic_copy(1024))] == []
    text = LoweredKernel(memory.symbolic_copy(1024)).kernel_source
    copy = next(row for row in text.splitlines() if "asc_copy_gm2ub_align(" in row)
    call = "  int32_t segs = n + 1;\n  ascend_copy_to<segs, 1>(ub, x);"
    (found,) = [f for f in lint.lint(text.replace(copy, call)) if f.code == "AK-LINT-003"]
    assert (
        "segs is known at run time only" in found.detail
        and "ascend_copy_to<segs" in found.here.text
    )


def test_code_generated_for_another_chip_is_refused_before_it_runs():
    """tilelang-ascend 1830: code for dav-2201 ran on a 950 and computed something else."""
    text = LoweredKernel(memory.symbolic_copy(1024)).kernel_source
    for mark in ("// bisheng --npu-arch=dav-2201\n", "// -DTILELANG_ARCH=dav-2201\n"):
        (found,) = lint.lint(mark + text)
        assert found.code == "AK-SOURCE-001" and found.severity == "error"
        assert "2201" in found.detail and "3510" in found.detail
