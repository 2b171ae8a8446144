"""topk_gate on NVIDIA GPUs, in TileLang: a row in registers, and the selection the gates share."""

from functools import partial
from typing import Any

from tilekernels.gating.cuda_select import Plan, selection


def prim_func(num_experts: int, num_topk: int, layout: Plan) -> Any:
    """The TileLang program: scores float32 (num_tokens, E) -> topk_idx int64 (num_tokens, K)."""
    from tilelang import language as T

    E, K = num_experts, num_topk
    s = selection(E, K, layout)
    N = T.dynamic("num_tokens")

    @T.macro
    def read(scores, row, x, first, col):
        for v in T.vectorized(s.W):
            x[first + v] = scores[row, col + v]

    @T.macro
    def value_at(scores, row, col):
        return scores[row, col]

    @T.macro
    def emit(topk_idx, token, place, col):
        if token < N:
            topk_idx[token, place] = T.cast(col, "int64")

    @T.prim_func
    def topk_gate(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
    ):
        with T.Kernel(T.ceildiv(N, s.tokens), threads=s.threads) as block:
            if layout.chained:
                T.pdl_sync()
                T.pdl_trigger()
            keys = T.alloc_shared((s.scratch,), "int64")
            x = T.alloc_local((s.V,), "float32")
            lane = T.get_thread_binding() % s.L
            slot = T.get_thread_binding() // s.L
            token = block * s.tokens + slot
            # Rows beyond the last are read as the last and not written.
            row = T.alloc_var("int32", init=T.min(token, N - 1))
            s.load(x, lane, partial(read, scores, row))
            s.select(
                x, keys, slot, lane, partial(value_at, scores, row), partial(emit, topk_idx, token)
            )

    return topk_gate
