"""The program of moe_topk_gate_backward on NVIDIA GPUs, in TileLang.

A warp has a token, a lane four columns of every 128, in registers. Lane j has choice j; shares of
experts go to their columns through a row in shared memory, those of an expert chosen twice added
by the first lane that chose it. Sums run in the reference's order: fused multiply-adds within a
lane, then the tree over lanes.
"""

from dataclasses import dataclass
from typing import Any

from tilekernels.gating import EPSILON
from tilekernels.gating.cuda_scoring import scoring_macros
from tilekernels.machine import WARP
from tilekernels.moe_topk_gate_backward.slope import SLOPE

WARPS = 4
OWN = 4
"""Neighbouring columns of a lane."""
SPAN = OWN * WARP
TREE = (16, 8, 4, 2, 1)


@dataclass(frozen=True)
class Form:
    """What a program is built for.

    Args:
        weight_slots, grad_slots: columns of the weights and of their gradient.
        aux: whether there is an auxiliary gradient.
        width: columns in one load, 1, 2 or 4.
    """

    num_experts: int
    num_topk: int
    weight_slots: int
    grad_slots: int
    scoring: str
    aux: bool
    width: int


def prim_func(form: Form) -> Any:
    """The TileLang program of a form."""
    from tilelang import language as T

    E, K, W = form.num_experts, form.num_topk, form.width
    chunks = -(-E // SPAN)
    V = chunks * OWN
    m = scoring_macros()
    N, S = T.dynamic("num_tokens, num_sequences")
    f = T.float32

    @T.macro
    def load(x, rows, row, lane):
        # A lane's columns of a row; 0 beyond it.
        for c in tuple(range(0, V, W)):
            col = c // OWN * SPAN + lane * OWN + c % OWN
            if (c // OWN + 1) * SPAN <= E:
                for v in T.vectorized(W):
                    x[c + v] = rows[row, col + v]
            else:
                if col < E:
                    for v in T.vectorized(W):
                        x[c + v] = rows[row, col + v]
                else:
                    for v in T.vectorized(W):
                        x[c + v] = f(0)

    @T.macro
    def tree(value):
        total = T.alloc_var("float32", init=value)
        for shift in TREE:
            total = T.ieee_add(total, T.shfl_xor(total, shift))
        return total

    @T.macro
    def dot(a, b):
        total = T.alloc_var("float32", init=f(0))
        for e in tuple(range(V)):
            total = T.ieee_fmaf(a[e], b[e], total)
        return tree(total)

    @T.macro
    def add_up(a):
        total = T.alloc_var("float32", init=f(0))
        for e in tuple(range(V)):
            total = T.ieee_fmaf(a[e], f(1), total)
        return tree(total)

    @T.macro
    def slope(y):
        # Of sqrt(softplus), from its value.
        q = T.alloc_var("float32", init=T.ieee_mul(y, y))
        p = T.alloc_var("float32", init=f(SLOPE[0]))
        for c in SLOPE[1:]:
            p = T.ieee_fmaf(p, q, f(c))
        found = T.alloc_var("float32", init=T.ieee_mul(y, p))
        if not (q < f(1)):
            rest = T.ieee_mul(T.ieee_sub(f(1), m.exp(-q)), f(0.5))
            found = T.ieee_fdiv(rest, y)
        return found

    @T.prim_func
    def moe_topk_gate_backward(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
        weights: T.Tensor((N, form.weight_slots), "float32"),
        grad: T.Tensor((N, form.grad_slots), "float32"),
        mask: T.Tensor((N,), "bool"),
        grad_sum: T.Tensor((S, E), "float32"),
        out: T.Tensor((N, E), "float32"),
        scale: T.float32,
        per_sequence: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, WARPS), threads=WARPS * WARP) as block:
            rows = T.alloc_shared((WARPS, chunks * SPAN), "float32")
            u = T.alloc_local((V,), "float32")
            du = T.alloc_local((V,), "float32")
            h = T.alloc_local((V,), "float32")
            expert = T.alloc_var("int32", init=-1)
            g = T.alloc_var("float32", init=f(0))
            w = T.alloc_var("float32", init=f(0))
            chosen = T.alloc_var("float32", init=f(0))
            share = T.alloc_var("float32", init=f(0))
            mine = T.alloc_var("float32", init=f(0))
            lane = T.get_thread_binding() % WARP
            warp = T.get_thread_binding() // WARP
            token = block * WARPS + warp
            # Rows beyond the last are read as the last and not written.
            row = T.alloc_var("int32", init=T.min(token, N - 1))
            load(u, scores, row, lane)
            if form.aux:
                load(h, grad_sum, row // per_sequence, lane)
            if lane < K:
                if topk_idx[row, lane] >= T.int64(0) and topk_idx[row, lane] < T.int64(E):
                    expert = T.cast(topk_idx[row, lane], "int32")
                    g = grad[row, lane]
                    w = weights[row, lane]
                    chosen = scores[row, expert]
            for c in tuple(range(chunks)):
                for v in T.vectorized(OWN):
                    rows[warp, c * SPAN + lane * OWN + v] = f(0)
            inner = tree(T.ieee_mul(g, w))
            below = T.ieee_add(tree(chosen), f(EPSILON))
            if expert >= 0:
                share = T.ieee_fdiv(T.ieee_sub(T.ieee_mul(scale, g), inner), below)
            same = T.alloc_var("uint32")
            same = T.match_any_sync(expert)
            for k in T.unroll(K):
                theirs = T.alloc_var("float32")
                theirs = T.shfl_sync(share, k)
                if ((same >> T.uint32(k)) & T.uint32(1)) != T.uint32(0):
                    mine = T.ieee_add(mine, theirs)
            T.sync_warp()
            if expert >= 0 and T.__ffs(same) - 1 == lane:
                rows[warp, expert] = mine
            T.sync_warp()
            for c in tuple(range(chunks)):
                for v in T.vectorized(OWN):
                    du[c * OWN + v] = rows[warp, c * SPAN + lane * OWN + v]
            if form.aux:
                total = add_up(u)
                products = dot(u, h)
                inverse = T.alloc_var("float32", init=f(0))
                if total != f(0):
                    if mask[row]:
                        inverse = T.ieee_fdiv(f(1), total)
                middle = T.alloc_var("float32", init=T.ieee_mul(products, inverse))
                for e in tuple(range(V)):
                    du[e] = T.ieee_add(du[e], T.ieee_mul(T.ieee_sub(h[e], middle), inverse))
            if form.scoring == "softmax":
                along = dot(du, u)
                for e in tuple(range(V)):
                    du[e] = T.ieee_mul(u[e], T.ieee_sub(du[e], along))
            elif form.scoring == "sigmoid":
                for e in tuple(range(V)):
                    du[e] = T.ieee_mul(du[e], T.ieee_mul(u[e], T.ieee_sub(f(1), u[e])))
            else:
                for e in tuple(range(V)):
                    du[e] = T.ieee_mul(du[e], slope(u[e]))
            if token < N:
                for c in tuple(range(0, V, W)):
                    col = c // OWN * SPAN + lane * OWN + c % OWN
                    if col < E:
                        for v in T.vectorized(W):
                            out[row, col + v] = du[c + v]

    return moe_topk_gate_backward
