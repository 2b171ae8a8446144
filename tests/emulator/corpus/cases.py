"""The cases: the repository's own kernels, those of the tests, of tile-kernels, and this folder's.

Every shape is small: a launch takes milliseconds and its trace a few thousand records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ascendkit.emulator import as_npu, run
from ascendkit.emulator.lowered import LoweredKernel
from tests.emulator.corpus import mixed, simt, vector
from tests.emulator.kernels import attention, gemm
from tests.emulator.kernels import mixed as tested
from tests.emulator.kernels import vector as small

Case = Callable[[], object]
BF16, F32, I32 = torch.bfloat16, torch.float32, torch.int32


def _r(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def _b(*shape: int) -> torch.Tensor:
    return _r(*shape, dtype=BF16)


def _i(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, dtype=I32)


def _z(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


def _topk_gate(experts: int) -> object:
    from tilekernels.topk_gate import ascend

    kernel = ascend.prim_func(experts, 4, 2)
    return run(kernel, _r(5, experts), _z(5, 4, dtype=torch.int64))


def _expand() -> object:
    from ep_comm.expand import ascend

    index = torch.tensor([3, -1, 0, 2, 2, -1, 1], dtype=I32)
    return run(ascend.prim_func(24, 2), _i(99, 5, 24), index, _z(1, 24, dtype=I32), _i(1, 7, 24))


def _reduce(biases: int) -> object:
    from ep_comm.reduce import ascend

    table = torch.tensor([[0, 2], [-1, 1], [3, -1]], dtype=I32)
    extra = [_b(3, 128) for _ in range(biases)]
    return run(
        ascend.prim_func(128, 2, biases, 2), _b(4, 128), table, _z(1, 128, dtype=BF16), *extra,
        _b(3, 128),
    )  # fmt: skip


def _layout(which: str) -> object:
    from ep_comm.layout import ascend

    words = _i(8, 12, 2)
    words[:, 1] = 0
    words = words.repeat(1, 2)
    if which == "count":
        return run(ascend.count_program(2, 8, 4, 2), words, _i(1, 2, 16))
    return run(ascend.slots_program(2, 8, 4, 2), words, _z(2, 8, dtype=I32), _i(1, 12, 2))


def _radix() -> object:
    from topk.radix_select import ascend

    values, indices = _r(2, 8), _z(2, 8, dtype=I32)
    ascend.run(
        _r(2, 300), 8, True, None, None, torch.int32, False, None, None, None, -1, 0.0, True,
        None, 1, out=(values, indices),
    )  # fmt: skip
    return values


def own() -> dict[str, Case]:
    """Kernels of this repository: its ops, its tests, and those written for the corpus."""
    mx = "float8_e4m3fn"
    scale = lambda: torch.randint(120, 130, (64, 2), dtype=torch.uint8)  # noqa: E731
    fp8 = lambda: _r(64, 64).to(torch.float8_e4m3fn)  # noqa: E731
    return {
        # vector
        "add": lambda: LoweredKernel(small.add.get_tir(512), out_idx=-1)(_r(512), _r(512)),
        "scale_rows": lambda: run(small.scale_rows.get_tir(128), _r(3, 128), _z(3, 128), 1.5),
        "pipelined_scale": lambda: run(vector.pipelined_scale(5), _r(5, 128), _z(5, 128)),
        "three_stages": lambda: run(vector.pipelined_scale(5, 64, 3), _r(5, 64), _z(5, 64)),
        "single_buffer": lambda: run(vector.single_buffer(3), _r(3, 128), _z(3, 128)),
        "softmax_rows": lambda: run(vector.softmax_rows(3), _r(3, 128), _z(3, 128)),
        "two_products": lambda: run(vector.two_products(256), *(_r(256) for _ in range(4))),
        "accumulate": lambda: run(vector.accumulate(4), _r(4, 64), _z(64)),
        "sum_over_cores": lambda: run(vector.sum_over_cores(4), *(_r(4, 64) for _ in range(3))),
        "neighbour_sum": lambda: run(tested.neighbour_sum(4), *(_r(4, 64) for _ in range(3))),
        "gather_rows": lambda: run(vector.gather_rows(8, 5), _r(8, 64), _i(8, 5), _z(5, 64)),
        "topk_gate": lambda: _topk_gate(72),
        "topk_gate_wide": lambda: _topk_gate(640),
        "expand": _expand,
        "reduce_0": lambda: _reduce(0),
        "reduce_2": lambda: _reduce(2),
        # simt
        "not_equal": lambda: run(small.not_equal.get_tir(128), _i(3, 128), _i(3, 128),
                                 _z(128, dtype=torch.bool)),
        "pick": lambda: run(small.pick.get_tir(64, 32), _r(64), _i(64, 32), _z(32)),
        "scale_then_rank": lambda: run(tested.scale_then_rank(2, 64), _r(2, 64), _r(2, 64),
                                       _i(1, 2, 64)),
        "layout_count": lambda: _layout("count"),
        "layout_slots": lambda: _layout("slots"),
        "reverse": lambda: run(simt.reverse(128), _r(128), _r(128)),
        "tree_sum": lambda: run(simt.tree_sum(64), _r(64), _r(8)),
        "scan": lambda: run(simt.scan(64), _i(9, 64), _i(9, 64)),
        "transpose": lambda: run(simt.transpose(16), _r(16, 16), _r(16, 16)),
        "bitonic_sort": lambda: run(simt.bitonic_sort(64), _i(99, 64), _i(1, 64)),
        "stencil": lambda: run(simt.stencil(64), _r(64), _r(64)),
        "histogram": lambda: run(simt.histogram(128), _i(32, 128), _i(1, 32)),
        "rank_pipeline": lambda: run(simt.rank_pipeline(3), _r(3, 64), _i(1, 3, 64)),
        "simd_after_simt": lambda: run(simt.simd_after_simt(64), _r(64), _r(64)),
        "mask_of_48": lambda: run(simt.mask_of_48(), _r(64), _r(64)),
        # cube
        "gemm_l1": lambda: run(gemm.gemm_l1(64, 64, 128, "bfloat16", 64, 64, 64), _b(64, 128),
                               _b(64, 128), _z(64, 64)),
        "gemm_l1_four_steps": lambda: run(gemm.gemm_l1(64, 64, 256, "bfloat16", 64, 64, 64),
                                          _b(64, 256), _b(64, 256), _z(64, 64)),
        "gemm_l1_float": lambda: run(gemm.gemm_l1(64, 64, 64, "float32", 64, 64, 32), _r(64, 64),
                                     _r(64, 64), _z(64, 64)),
        "gemm_l1_tails": lambda: run(gemm.gemm_l1(72, 40, 96, "bfloat16", 64, 64, 64), _b(72, 96),
                                     _b(40, 96), _z(72, 40)),
        "gemm_l0": lambda: run(gemm.gemm_l0(64, 64, 64, "bfloat16"), _b(64, 64), _b(64, 64),
                               _z(64, 64)),
        "gemm_l0_trans_a": lambda: run(gemm.gemm_l0(64, 64, 64, "float16", True, True),
                                       _r(64, 64, dtype=torch.float16),
                                       _r(64, 64, dtype=torch.float16), _z(64, 64)),
        "gemm_l0_trans_b": lambda: run(gemm.gemm_l0(64, 128, 64, "bfloat16", False, False),
                                       _b(64, 64), _b(64, 128), _z(64, 128)),
        "gemm_l0_int8": lambda: run(gemm.gemm_l0(64, 64, 64, "int8", accum="int32"),
                                    _i(9, 64, 64).to(torch.int8), _i(9, 64, 64).to(torch.int8),
                                    _i(1, 64, 64)),
        "gemm_split_k": lambda: run(gemm.gemm_split_k(64, 64, 128, 2, block=64), _b(64, 128),
                                    _b(64, 128), _z(64, 64)),
        "gemm_persistent": lambda: run(gemm.gemm_persistent(128, 128, 64, 2, block=64),
                                       _b(128, 64), _b(128, 64), _b(128, 128)),
        "gemm_hf32": lambda: run(gemm.gemm_hf32(64, 64, 64, "nearest_even"), _r(64, 64),
                                 _r(64, 64), _z(64, 64)),
        "gemm_mx": lambda: run(gemm.gemm_mx(64, 64, 64, mx), fp8(), fp8(), scale(), scale(),
                               _z(64, 64)),
        # mixed
        "gemm_relu_scale": lambda: run(tested.gemm_relu_scale(64, 64, 64), _b(64, 64), _b(64, 64),
                                       _z(64, 64)),
        "flash_attention": lambda: run(attention.flash_attention(1, 64, 128), _b(64, 64),
                                       _b(128, 64), _b(128, 64), _z(64, 64)),
        "bias_relu": lambda: run(mixed.bias_relu(64, 64, 64), _b(64, 64), _b(64, 64), _r(64),
                                 _z(64, 64)),
        "scaled_operand": lambda: run(mixed.scaled_operand(64, 64), _r(64, 64), _b(64, 64),
                                      _z(64, 64)),
        "two_layers": lambda: run(mixed.two_layers(64), *(_b(64, 64) for _ in range(3)),
                                  _z(64, 64)),
        "sum_of_tiles": lambda: run(mixed.sum_of_tiles(3), _b(192, 64), _b(192, 64), _z(64, 64)),
        "row_peaks": lambda: run(mixed.row_peaks(64), _b(64, 64), _b(64, 64), _z(64, 64)),
        "gated": lambda: run(mixed.gated(64), *(_b(64, 64) for _ in range(3)), _z(64, 64)),
        "narrow_output": lambda: run(mixed.narrow_output(64), *(_b(64, 64) for _ in range(3))),
        "deep_k": lambda: run(mixed.deep_k(64, 64, 256), _b(64, 256), _b(64, 256), _z(64, 64)),
        "tiles_in_turn": lambda: run(mixed.tiles_in_turn(3), _b(192, 64), _b(64, 64),
                                     _z(192, 64)),
    }  # fmt: skip


@contextmanager
def peers() -> Iterator[dict[str, Case]]:
    """Kernels of tile-kernels 2.1.0, on one AI core."""
    from tests.emulator.peer import tile_kernels

    def npu(function: Callable[[], object]) -> Case:
        def case() -> object:
            with as_npu(1):
                return function()

        return case

    with tile_kernels() as tk:
        cast = tk.ref_cast.cast
        yield {
            name: npu(case)
            for name, case in {
                "tk_per_token_cast": lambda: tk.per_token_cast(_b(4, 256), "e4m3", 32),
                "tk_per_block_cast": lambda: tk.per_block_cast(_b(128, 128), "e4m3", (32, 32)),
                "tk_per_channel_cast": lambda: tk.per_channel_cast(
                    _b(128, 128), "e4m3", 32, round_sf=True
                ),
                "tk_cast_back": lambda: tk.cast_back(
                    cast(_b(8, 256), "e4m3", (1, 32), round_sf=True), "bf16", (1, 32)
                ),
                "tk_swiglu_forward": lambda: tk.swiglu_forward(_b(4, 256), "bf16"),
                "tk_norm_forward": lambda: tk.norm_forward(_r(3, 256), _r(256), 1e-6),
                "tk_topk_gate": lambda: tk.topk_gate(_r(5, 72), 4),
                "tk_normalize_weight": lambda: tk.normalize_weight(_r(5, 8).abs()),
            }.items()
        }
