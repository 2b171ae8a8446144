"""expand on the Ascend 950, in TileLang: copies only, gathered in and written out in long bursts.

A core takes tiles of consecutive output rows. Their sources come in one copy each, the tile goes
out in one. Gaps are zeroed in the Unified Buffer by a copy from a row of zeros in memory.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

STAGES = 2
TILE_BYTES = 64 * 1024
ROOM = 4096
"""For indices and alignment."""


def supports(case: Case) -> Support:
    """Every legal row that fits the Unified Buffer twice."""
    size, most = int(case.params["row_bytes"]), (UB_BYTES - ROOM) // STAGES
    if size > most:
        return Support(False, f"rows of {size} bytes; the Unified Buffer holds {most}, twice")
    return Support(True)


def run(rows: "torch.Tensor", index: "torch.Tensor", *, out: "torch.Tensor") -> None:
    """Fill ``out`` (num_out, hidden) with rows of (num_rows, hidden)."""
    import torch

    words = rows.shape[1] * rows.element_size() // 4
    zeros = torch.zeros((1, words), dtype=torch.int32, device=out.device)
    source = rows.view(torch.int32) if len(rows) else zeros
    kernel(words, _vector_cores(out))(source, index, zeros, out.view(torch.int32))


@lru_cache(maxsize=256)
def kernel(words: int, num_cores: int) -> Any:
    """The compiled kernel of a row width."""
    import tilelang

    return tilelang.compile(prim_func(words, num_cores), target="ascend")


def _vector_cores(out: "torch.Tensor") -> int:
    if out.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(out.device).cube_core_num)


def rows_per_tile(words: int) -> int:
    """Rows of one tile."""
    return max(1, min(64, TILE_BYTES // (4 * words)))


def prim_func(words: int, num_cores: int) -> Any:
    """The TileLang program: int32 (num_rows, W), index (num_out,) -> int32 (num_out, W)."""
    from tilelang.ascend import language as T

    W, block = words, rows_per_tile(words)
    pitch = -(-W // 8) * 8
    R, N = T.dynamic("num_rows, num_out")

    @T.prim_func
    def expand(
        rows: T.Tensor((R, W), "int32"),
        index: T.Tensor((N,), "int32"),
        zeros: T.Tensor((1, W), "int32"),
        out: T.Tensor((N, W), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            tile_ub = T.alloc_shared((block, pitch), "int32")
            T.annotate_buffer_versions({tile_ub: STAGES})
            per = T.min(block, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, per)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                first = tile * per
                valid = T.min(per, N - first)
                for r in T.serial(valid):
                    if index[first + r] >= 0:
                        T.copy(rows[index[first + r], :], tile_ub[r, :W])
                    else:
                        T.copy(zeros[0, :], tile_ub[r, :W])
                T.copy(tile_ub[:valid, :W], out[first : first + valid, :])

    return expand
