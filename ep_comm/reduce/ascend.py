"""reduce on the Ascend 950's vector cores, in TileLang: rows come by copies, registers add them.

A core takes a token (or a part of its columns, where k rows do not fit the Unified Buffer twice),
brings its biases and rows in, and adds them in order, 64 columns at a time, in float32. An entry of
-1 brings a row of zeros: adding +0.0 changes no sum that starts at +0.0.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES
from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

LANES = 64
ROOM = 8 * 1024
"""Of the Unified Buffer, left to the compiler."""
STAGES = 2


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    rows: "torch.Tensor",
    table: "torch.Tensor",
    bias_0: "torch.Tensor | None" = None,
    bias_1: "torch.Tensor | None" = None,
    *,
    out: "torch.Tensor",
) -> None:
    """Fill ``out`` bf16 (num_tokens, hidden)."""
    biases = [b for b in (bias_0, bias_1) if b is not None]
    zeros = rows.new_zeros((1, rows.shape[1]))
    source = rows if len(rows) else zeros
    found = kernel(rows.shape[1], table.shape[1], len(biases), _vector_cores(out))
    found(source, table, zeros, *biases, out)


@lru_cache(maxsize=256)
def kernel(hidden: int, num_topk: int, num_bias: int, num_cores: int) -> Any:
    """The compiled kernel of a shape."""
    import tilelang

    return tilelang.compile(prim_func(hidden, num_topk, num_bias, num_cores), target="ascend")


def _vector_cores(out: "torch.Tensor") -> int:
    if out.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(out.device).cube_core_num)


def columns(hidden: int, num_rows: int) -> int:
    """Columns of one step: all, or as many as fit with ``num_rows`` rows and a result."""
    most = (UB_BYTES - ROOM) // (STAGES * 2 * (num_rows + 1)) // LANES * LANES
    return min(-(-hidden // LANES) * LANES, most)


def prim_func(hidden: int, num_topk: int, num_bias: int, num_cores: int) -> Any:
    """The TileLang program: bf16 (num_rows, H), int32 (num_tokens, K), zeros (1, H), biases ->
    bf16 (num_tokens, H)."""
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    H, K, B = hidden, num_topk, num_bias
    C = columns(H, K + B)
    steps = -(-H // C)
    R, N = T.dynamic("num_rows, num_tokens")

    @T.macro
    def bring(rows, table, zeros, biases, rows_ub, t, begin, width):
        for b, bias in enumerate(biases):
            T.copy(bias[t, begin : begin + width], rows_ub[b, :width])
        for j in T.serial(K):
            if table[t, j] >= 0:
                T.copy(rows[table[t, j], begin : begin + width], rows_ub[B + j, :width])
            else:
                T.copy(zeros[0, :width], rows_ub[B + j, :width])

    @T.macro
    def add(rows_ub, out_ub, width):
        with T.SimdVF():
            total = S.alloc_local((1,), "float32")
            for v in T.serial(T.ceildiv(width, LANES)):
                total[0] = S.vdup(0.0, "float32")
                for j in tuple(range(K + B)):
                    packed = S.vld(rows_ub[j, v * LANES], dist="UNPK_B16")
                    total[0] = S.vadd(total[0], S.vcvt(packed, "float32"))
                # Without saturation: what overflows bf16 is infinite, as everywhere else.
                rounded = S.vcvt(total[0], "bfloat16", sat=False)
                S.vsts(out_ub[v * LANES], rounded, dist="PK_B32")

    @T.macro
    def walk(core, rows, table, zeros, biases, out):
        rows_ub = T.alloc_shared((K + B, C), "bfloat16")
        out_ub = T.alloc_shared((C,), "bfloat16")
        T.annotate_buffer_versions({rows_ub: STAGES, out_ub: STAGES})
        for item in T.Persistent([N * steps], num_cores, core, group_size=1, num_stages=STAGES):
            t = item // steps
            begin = item % steps * C
            width = T.min(C, H - begin)
            bring(rows, table, zeros, biases, rows_ub, t, begin, width)
            add(rows_ub, out_ub, width)
            T.copy(out_ub[:width], out[t, begin : begin + width])

    # Annotations, one each: two parameters with the same one would be one buffer.
    rows_t, table_t = T.Tensor((R, H), "bfloat16"), T.Tensor((N, K), "int32")
    zeros_t, out_t = T.Tensor((1, H), "bfloat16"), T.Tensor((N, H), "bfloat16")
    first_t, second_t = T.Tensor((N, H), "bfloat16"), T.Tensor((N, H), "bfloat16")

    if B == 0:

        @T.prim_func
        def reduce_0(rows: rows_t, table: table_t, zeros: zeros_t, out: out_t):
            with T.Kernel(num_cores) as core:
                walk(core, rows, table, zeros, (), out)

        return reduce_0
    if B == 1:

        @T.prim_func
        def reduce_1(rows: rows_t, table: table_t, zeros: zeros_t, bias: first_t, out: out_t):
            with T.Kernel(num_cores) as core:
                walk(core, rows, table, zeros, (bias,), out)

        return reduce_1

    @T.prim_func
    def reduce_2(
        rows: rows_t,
        table: table_t,
        zeros: zeros_t,
        bias_0: first_t,
        bias_1: second_t,
        out: out_t,
    ):
        with T.Kernel(num_cores) as core:
            walk(core, rows, table, zeros, (bias_0, bias_1), out)

    return reduce_2
