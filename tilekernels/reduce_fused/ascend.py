"""reduce_fused on the Ascend 950's vector cores, in TileLang: rows come by copies, registers add.

Scales of places (weight times scale of the row) are a small torch operation before the launch. A
place that is left out brings a row of zeros and a scale of -0.0: their product, -0.0, changes no
sum. A core takes a token, or a part of its columns where k rows do not fit the Unified Buffer
twice.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support
from tilekernels.machine import compile_ascend, padded, vector_cores

if TYPE_CHECKING:
    import torch

LANES = 64
STAGES = 2
ROOM = 8 * 1024
"""For scales and alignment."""
LARGEST = 448.0
"""Of e4m3; where its conversion saturates."""


def supports(case: Case) -> Support:
    """Every legal shape: rows go in steps of as many columns as fit."""
    return Support(True)


def run(
    x: "torch.Tensor",
    x_sf: "torch.Tensor | None",
    topk_weights: "torch.Tensor | None",
    token_topk_to_pos: "torch.Tensor",
    fp8_format: str = "",
    sf: "torch.Tensor | None" = None,
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` (num_tokens, hidden)."""
    import torch

    places, zeros = token_topk_to_pos, x.new_zeros((1, x.shape[1]))
    valid = (places >= 0) & (places < x.shape[0])
    scale = torch.ones(places.shape, device=x.device) if topk_weights is None else topk_weights
    rows = x if len(x) else zeros
    if x_sf is not None and len(x):
        scale = scale * x_sf[places.where(valid, 0).long()]
    scale = scale.where(valid, -0.0).contiguous()
    dtype = str(x.dtype).removeprefix("torch.")
    to = f"e4m3{'f' if sf is not None else ''}" if fp8_format else ""
    form = (x.shape[1], places.shape[1], dtype, to)
    found = kernel(*form, vector_cores(x), x.device.type == "cpu")
    found(rows, places.where(valid, -1).contiguous(), scale, zeros, sf, out)


@lru_cache(maxsize=256)
def kernel(hidden: int, num_topk: int, dtype: str, to: str, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(hidden, num_topk, dtype, num_cores, to))


def columns(hidden: int, num_topk: int, dtype: str) -> int:
    """Columns of one step: all, or as many as fit with k rows and a result, twice."""
    size = 4 if dtype == "float32" else 2
    most = (UB_BYTES - ROOM) // (STAGES * size * (num_topk + 1)) // LANES * LANES
    return min(-(-hidden // LANES) * LANES, most)


def prim_func(hidden: int, num_topk: int, dtype: str, num_cores: int, to: str = "") -> Any:
    """The TileLang program: rows (X, H), places (N, K), scales (N, K), zeros (1, H), factor of the
    result (1,) -> (N, H).

    Args:
        to: "e4m3" for that output, "e4m3f" if it has a factor, "" for that of the rows.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    H, K, narrow = hidden, num_topk, dtype != "float32"
    C = columns(H, K, dtype)
    e4m3, scaled = bool(to), to == "e4m3f"
    steps, out_dtype = -(-H // C), "float8_e4m3fn" if e4m3 else dtype
    X, N = T.dynamic("num_expanded_tokens, num_tokens")

    @T.prim_func
    def reduce_fused(
        x: T.Tensor((X, H), dtype),
        places: T.Tensor((N, K), "int32"),
        scale: T.Tensor((N, K), "float32"),
        zeros: T.Tensor((1, H), dtype),
        sf: T.Tensor((1,), "float32"),
        out: T.Tensor((N, H), out_dtype),
    ):
        with T.Kernel(num_cores) as core:
            rows_ub = T.alloc_shared((K, C), dtype)
            out_ub = T.alloc_shared((C,), out_dtype)
            sf_ub = T.alloc_shared((padded(1),), "float32")
            scale_ub = T.alloc_shared((padded(K),), "float32")
            T.annotate_buffer_versions({rows_ub: STAGES, out_ub: STAGES, scale_ub: STAGES})
            if scaled:
                T.copy(sf, sf_ub[:1])
            for item in T.Persistent([N * steps], num_cores, core, group_size=1, num_stages=STAGES):
                t = item // steps
                begin = item % steps * C
                width = T.min(C, H - begin)
                T.copy(scale[t, :], scale_ub[:K])
                for j in T.serial(K):
                    if places[t, j] >= 0:
                        T.copy(x[places[t, j], begin : begin + width], rows_ub[j, :width])
                    else:
                        T.copy(zeros[0, :width], rows_ub[j, :width])
                with T.SimdVF():
                    total = S.alloc_local((1,), "float32")
                    for v in T.serial(T.ceildiv(width, LANES)):
                        total[0] = S.vdup(0.0, "float32")
                        for j in tuple(range(K)):
                            factor = S.vld(scale_ub[j], dist="BRC_B32")
                            if narrow:
                                packed = S.vld(rows_ub[j, v * LANES], dist="UNPK_B16")
                                S.vmula(total[0], S.vcvt(packed, "float32"), factor)
                            else:
                                S.vmula(total[0], S.vld(rows_ub[j, v * LANES]), factor)
                        if scaled:
                            total[0] = S.vmul(total[0], S.vld(sf_ub[0], dist="BRC_B32"))
                        if e4m3:
                            within = S.vmins(S.vmaxs(total[0], -LARGEST), LARGEST)
                            S.vsts(out_ub[v * LANES], S.vcvt(within, out_dtype), dist="PK4_B32")
                        elif narrow:
                            rounded = S.vcvt(total[0], dtype, sat=False)
                            S.vsts(out_ub[v * LANES], rounded, dist="PK_B32")
                        else:
                            S.vsts(out_ub[v * LANES], total[0])
                T.copy(out_ub[:width], out[t, begin : begin + width])

    return reduce_fused
