"""reduce on NVIDIA GPUs, in TileLang: a thread owns 8 columns of a token and adds in order.

The loads of all choices (in groups of ``GROUP``) are issued before the first addition, so that a
token costs one latency and not k. A thread's columns are 16 bytes wide; a long row is shared by
several blocks, so that few tokens still fill the device.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

VECTOR = 8
"""bf16 values in one load."""
THREADS = 128
GROUP = 8
"""Rows whose loads are in flight together; 32 registers of bf16 pairs."""


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
    if not len(rows):
        # No row can be named: the table is all -1, and any tensor stands for the rows.
        rows = rows.new_zeros((1, rows.shape[1]))
    kernel(rows.shape[1], table.shape[1], len(biases))(rows, table, *biases, out)


@lru_cache(maxsize=256)
def kernel(hidden: int, num_topk: int, num_bias: int, arch: str = "") -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    import tilelang

    return tilelang.compile(
        prim_func(hidden, num_topk, num_bias),
        target={"kind": "cuda", "arch": arch} if arch else "cuda",
        pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    )


def prim_func(hidden: int, num_topk: int, num_bias: int) -> Any:
    """The TileLang program: rows bf16 (R, H), table int32 (N, K), biases -> bf16 (N, H)."""
    from tilelang import language as T

    H, K, vectors = hidden, num_topk, hidden // VECTOR
    threads = min(THREADS, -(-vectors // 32) * 32)
    passes = -(-vectors // threads)
    R, N = T.dynamic("num_rows, num_tokens")
    groups = tuple(tuple(range(g, min(g + GROUP, K))) for g in range(0, K, GROUP))

    @T.macro
    def add(rows, table, out, biases, t, at):
        held = T.alloc_local((min(GROUP, K), VECTOR), "bfloat16")
        total = T.alloc_local((VECTOR,), "float32")
        rounded = T.alloc_local((VECTOR,), "bfloat16")
        if at < H:
            for v in T.unroll(VECTOR):
                total[v] = 0.0
            for bias in biases:
                for v in T.vectorized(VECTOR):
                    rounded[v] = bias[t, at + v]
                for v in T.unroll(VECTOR):
                    total[v] = total[v] + T.cast(rounded[v], "float32")
            for group in groups:
                for j in group:
                    if table[t, j] >= 0:
                        for v in T.vectorized(VECTOR):
                            held[j - group[0], v] = rows[table[t, j], at + v]
                for j in group:
                    if table[t, j] >= 0:
                        for v in T.unroll(VECTOR):
                            total[v] = total[v] + T.cast(held[j - group[0], v], "float32")
            for v in T.unroll(VECTOR):
                rounded[v] = T.cast(total[v], "bfloat16")
            for v in T.vectorized(VECTOR):
                out[t, at + v] = rounded[v]

    if num_bias == 0:

        @T.prim_func
        def reduce_0(
            rows: T.Tensor((R, H), "bfloat16"),
            table: T.Tensor((N, K), "int32"),
            out: T.Tensor((N, H), "bfloat16"),
        ):
            with T.Kernel(N, passes, threads=threads) as (t, p):
                add(rows, table, out, (), t, (p * threads + T.get_thread_binding()) * VECTOR)

        return reduce_0
    if num_bias == 1:

        @T.prim_func
        def reduce_1(
            rows: T.Tensor((R, H), "bfloat16"),
            table: T.Tensor((N, K), "int32"),
            bias: T.Tensor((N, H), "bfloat16"),
            out: T.Tensor((N, H), "bfloat16"),
        ):
            with T.Kernel(N, passes, threads=threads) as (t, p):
                add(rows, table, out, (bias,), t, (p * threads + T.get_thread_binding()) * VECTOR)

        return reduce_1

    @T.prim_func
    def reduce_2(
        rows: T.Tensor((R, H), "bfloat16"),
        table: T.Tensor((N, K), "int32"),
        bias_0: T.Tensor((N, H), "bfloat16"),
        bias_1: T.Tensor((N, H), "bfloat16"),
        out: T.Tensor((N, H), "bfloat16"),
    ):
        with T.Kernel(N, passes, threads=threads) as (t, p):
            add(
                rows,
                table,
                out,
                (bias_0, bias_1),
                t,
                (p * threads + T.get_thread_binding()) * VECTOR,
            )

    return reduce_2
