"""Copies, tails, pads, reductions and large products that gave users wrong values without a word;
tests are named after the class of input, and expect the right value or the finding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytest.importorskip("tilelang")

from ascendkit.emulator import check
from ascendkit.emulator.lowered import LoweredKernel, ascend_target
from tests.emulator import edge_shapes
from tests.emulator.kernels import gemm, memory
from tilekernels.expand_to_fused import ascend as fused

pytestmark = pytest.mark.emu
UNCHECKED = {"tl.disable_safe_memory_legalize": True}


def lowered(prim_func, configs=None):
    with ascend_target():
        return LoweredKernel(prim_func, None, configs)


def codes(kernel, *args, **options):
    return [f.code for f in check(kernel, *args, **options).findings]


@pytest.mark.parametrize("m", [2, 16])
def test_rows_narrower_than_32_bytes_from_global_memory(m):
    """tilelang-ascend 1641: a column (M, 1) as M blocks of 4 bytes lands in padded slots."""
    kernel = lowered(memory.column(m))
    x, y = torch.arange(1.0, m + 1).view(m, 1), torch.zeros(m, 64)
    assert codes(kernel, x, y) == [] and torch.equal(y, x.expand(m, 64))
    # The same column as M bursts of 4 bytes, one after the other or in slots of 32 bytes.
    size = 4 * m
    one = next(row for row in kernel.kernel_source.splitlines() if "asc_copy_gm2ub_align(" in row)
    # Slots of 32 bytes are legal; what the threads read between the blocks nobody wrote.
    for apart, found in ((4, {"AK-BURST-001"}), (32, {"AK-UNINIT-003"})):
        rows = one.replace(f", 1, {size}, ", f", {m}, 4, ")
        rows = rows.replace(f"{size}, {size});", f"4, {apart});")
        y.zero_()
        result = check(kernel.kernel_source.replace(one, rows), x, y, grid=1)
        assert {f.code for f in result.findings} == found
        assert all("asc_copy_gm2ub_align" in f.here.text for f in result.findings) == (apart == 4)
        assert apart == 4 or not torch.equal(y, x.expand(m, 64))


@pytest.mark.parametrize("n", [5, 20, 32])
def test_short_vectors_of_any_length_are_copied_whole(n):
    """tilelang-ascend 1641: copies of one row pass at every length."""
    kernel = lowered(memory.threads_to_the_end(n, 32, True))
    x, y = torch.arange(1.0, n + 1), torch.zeros(n)
    assert codes(kernel, x, y) == [] and torch.equal(x, y)


@pytest.mark.parametrize("pad", [0, -99])
def test_pad_value_of_a_tile_past_the_edge(pad):
    """tilelang 2543: a copy of a tile past the tensor's end ignores the annotated value."""
    x = torch.arange(3600, dtype=torch.int32).view(60, 60)
    want = torch.nn.functional.pad(x, (0, 4, 0, 4), value=pad)
    y = torch.zeros(64, 64, dtype=torch.int32)
    assert codes(lowered(memory.padded_tile(60, 60, 64, pad, False)), x, y) == ["AK-UNINIT-001"]
    assert torch.equal(y[:60, :60], x) and not torch.equal(y, want)
    assert codes(lowered(memory.padded_tile(60, 60, 64, pad, True)), x, y) == []
    assert torch.equal(y, want)


@pytest.mark.parametrize("n", [60, 63, 64])
def test_lanes_of_an_aligned_width_past_the_extent(n):
    """TileKernels PR 20: every lane of the aligned width stores, also those past the extent."""
    storage, x = torch.zeros(128), torch.arange(1.0, n + 1)
    found = codes(lowered(memory.threads_to_the_end(n, 64, False), UNCHECKED), x, storage[:n])
    assert found == (["AK-BOUNDS-005"] if n < 64 else [])
    assert torch.equal(storage[:n], x) and not storage[n:].any()
    assert codes(lowered(memory.threads_to_the_end(n, 64, True)), x, storage[:n]) == []


def test_random_edge_shapes_of_rows_scattered_to_fused_places(seed):
    """TileKernels PR 20: widths next to alignments, no tokens, rows of padding; the whole count is
    ``python -m tests.emulator.edge_shapes``."""
    chosen = [s for _, s in zip(range(6), edge_shapes.shapes(seed, widths=2))]
    for number, shape in enumerate([*chosen, replace(chosen[0], tokens=0, padding=5)]):
        assert edge_shapes.wrong(shape, seed + number) == "", shape


def test_random_edge_shapes_would_see_wrong_rows_and_a_row_too_many(monkeypatch):
    shape = edge_shapes.Shape(17, 3, 1, 1)

    def row_too_far(x, places, experts, *, out):
        out.zero_()
        out.as_strided(out.shape, out.stride(), out.storage_offset() + 17).zero_()

    monkeypatch.setattr(fused, "run", lambda x, places, experts, *, out: out.zero_())
    assert edge_shapes.wrong(shape, 1) == "wrong values"
    monkeypatch.setattr(edge_shapes.torch, "equal", lambda a, b: True)
    monkeypatch.setattr(fused, "run", row_too_far)
    assert edge_shapes.wrong(shape, 1) == "bytes around the output changed"


@pytest.mark.parametrize("k, width", [(96, 32), (96, 48)])
def test_int8_slices_that_end_inside_a_block_of_32(k, width):
    """tilelang-ascend 1341: a slice of 48 is consumed as 64; what lies behind it is multiplied."""
    kernel = lowered(memory.sliced_product(k, width))
    a = (torch.arange(64 * k) % 7 - 3).to(torch.int8).view(64, k)
    b = (torch.arange(64 * k) % 11 - 5).to(torch.int8).view(64, k)
    c = torch.zeros(64, 64, dtype=torch.int32)
    want = a.int() @ b.int().T
    # All bytes behind the slice have been written: it is their values that do not belong there.
    assert codes(kernel, a, b, c) == ([] if width == 32 else ["AK-CUBE-004"])
    assert torch.equal(c, want) == (width == 32)
    # Loaded up to the last whole block only, the rest of L0B holds what nobody wrote.
    whole = kernel.kernel_source
    cut = whole.replace("0, s, 4, 2, 4, 4)", "0, s, 4, 1, 4, 4)")
    assert (cut != whole) == (width == 48)
    result = check(cut, a, b, c, grid=1)
    undefined = [f for f in result.findings if f.code == "AK-UNINIT-002"]
    assert bool(undefined) == (width == 48)
    assert all(f.end > f.begin and f.space in ("L0A", "L0B") for f in undefined)


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_reductions_by_type_dimension_and_operation(dtype, op):
    """tilelang-ascend 1683: of all of these only the sum of float16 over dimension 0 was wrong."""
    kind = getattr(torch, dtype)
    x = ((torch.arange(16 * 128) * 37) % 29 - 14).to(kind).view(16, 128)[:, : 256 // kind.itemsize]
    x = x.contiguous()
    want = {"sum": torch.sum, "max": torch.amax}[op]
    down, across = torch.zeros(x.shape[1], dtype=kind), torch.zeros(16, dtype=kind)
    assert codes(lowered(memory.fold_rows(*x.shape, dtype, op)), x, down) == []
    assert torch.equal(down, want(x, 0))
    assert codes(lowered(memory.fold_columns(*x.shape, dtype, op)), x, across) == []
    assert torch.equal(across, want(x, 1))


def test_a_product_with_k_of_131072():
    """tilelang-ascend 140: K = 131072 ended in an address error."""
    k = 131072
    a, c = torch.ones(16, k, dtype=torch.bfloat16), torch.zeros(16, 16)
    kernel = lowered(gemm.gemm_l1(16, 16, k, "bfloat16", 16, 16, 512))
    assert codes(kernel, a, a.clone(), c) == [] and bool((c == k).all())


@pytest.mark.parametrize("m, k", [(256, 131072), (256, 1 << 23)])
def test_offsets_of_a_product_larger_than_memory(m, k):
    """tilelang-ascend 140: addresses and counters alone, past 2^31 bytes as well."""
    a, c = (torch.empty(m, n, device="meta") for n in (k, m))
    kernel = lowered(gemm.gemm_l1(m, m, k, "bfloat16"))
    kernel(a.bfloat16(), a.bfloat16(), c, control=True)
    assert kernel.last_grid == 4
