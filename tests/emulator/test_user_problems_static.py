"""Problems that users met on devices, found here without a run; tests are named after the class."""

import pytest

pytest.importorskip("tilelang")

from ascendkit.emulator import samples
from ascendkit.emulator.findings import fits
from ascendkit.emulator.lowered import ascend_target
from tests.emulator.kernels import capacity

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
