"""The program of moe_topk_gate_backward on NVIDIA GPUs, in TileLang.

A warp has a token, a lane four columns of every 128. Lane j has choice j; shares of experts go to
their columns through a row in shared memory, those of an expert chosen twice added by the first
lane that chose it. Without an auxiliary term, and but for softmax, the gradient of all other
columns is 0, and their scores are not even read. Sums run in the reference's order: fused
multiply-adds within a lane, then the tree over lanes.
"""

from dataclasses import dataclass
from typing import Any

from tilekernels.gating import EPSILON
from tilekernels.gating.scoring import LN2_HIGH, LN2_LOW, LOG2_E, ROUND
from tilekernels.machine import WARP
from tilekernels.moe_topk_gate_backward.slope import (
    EXPM1,
    HALF,
    LARGE,
    RECIPROCAL,
    SMALL,
)

OWN = 4
"""Neighbouring columns of a lane."""
SPAN = OWN * WARP
MANY_SCORES = 16
"""In a lane: more of them, and derivatives take their registers only at the end."""


@dataclass(frozen=True)
class Form:
    """What a program is built for.

    Args:
        weight_slots, grad_slots: columns of the weights and of their gradient.
        aux: whether there is an auxiliary gradient.
        width: columns in one load, 1, 2 or 4.
        warps: warps of a block.
    """

    num_experts: int
    num_topk: int
    weight_slots: int
    grad_slots: int
    scoring: str
    aux: bool
    width: int
    warps: int = 4


def prim_func(form: Form) -> Any:
    """The TileLang program of a form."""
    from tilelang import language as T

    E, K, W, warps = form.num_experts, form.num_topk, form.width, form.warps
    chunks = -(-E // SPAN)
    V = chunks * OWN
    dense = form.aux or form.scoring == "softmax"
    early = dense and form.scoring != "softmax" and V <= MANY_SCORES
    lanes = tuple(1 << i for i in reversed(range(WARP.bit_length() - 1)))
    slots = tuple(1 << i for i in reversed(range((K - 1).bit_length())))
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
    def trees(sums, shifts):
        # Both at once: a shuffle does not wait for the one before it.
        for shift in shifts:
            others = T.alloc_local((2,), "float32")
            for i in (0, 1):
                others[i] = T.shfl_xor(sums[i], shift)
            for i in (0, 1):
                sums[i] = T.ieee_add(sums[i], others[i])

    @T.macro
    def dot(sums, i, a, b):
        sums[i] = f(0)
        for e in tuple(range(V)):
            sums[i] = T.ieee_fmaf(a[e], f(1) if b is None else b[e], sums[i])

    @T.macro
    def steep(y):
        # The derivative of the scoring function, from its value.
        if form.scoring == "sigmoid":
            return T.alloc_var("float32", init=T.ieee_mul(y, T.ieee_sub(f(1), y)))
        else:
            q = T.alloc_var("float32", init=T.min(T.ieee_mul(y, y), f(LARGE)))
            shifted = T.alloc_var("float32", init=T.ieee_fmaf(q, f(-LOG2_E), f(ROUND)))
            n = T.alloc_var("float32", init=T.ieee_sub(shifted, f(ROUND)))
            r = T.alloc_var("float32", init=T.ieee_fmaf(n, f(-LN2_HIGH), -q))
            r = T.ieee_fmaf(n, f(-LN2_LOW), r)
            p = T.alloc_var("float32", init=f(EXPM1[0]))
            for c in EXPM1[1:]:
                p = T.ieee_fmaf(p, r, f(c))
            bits = (T.reinterpret(shifted, "uint32") << T.uint32(23)) + T.uint32(HALF)
            power = T.alloc_var("float32", init=T.reinterpret(bits, "float32"))
            rest = T.alloc_var(
                "float32", init=T.ieee_fmaf(-power, T.ieee_mul(r, p), T.ieee_sub(f(0.5), power))
            )
            # What becomes of a y below SMALL here does not count.
            divisor = T.alloc_var("float32", init=y)
            guess = T.uint32(RECIPROCAL) - T.reinterpret(divisor, "uint32")
            inverse = T.alloc_var("float32", init=T.reinterpret(guess, "float32"))
            error = T.alloc_var("float32", init=T.ieee_fmaf(-divisor, inverse, f(1)))
            inverse = T.ieee_fmaf(inverse, T.ieee_fmaf(error, error, error), inverse)
            inverse = T.ieee_fmaf(inverse, T.ieee_fmaf(-divisor, inverse, f(1)), inverse)
            found = T.ieee_mul(rest, inverse)
            return T.alloc_var(
                "float32", init=T.if_then_else(y < f(SMALL), T.ieee_mul(y, f(0.5)), found)
            )

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
        with T.Kernel(T.ceildiv(N, warps), threads=warps * WARP) as block:
            rows = T.alloc_shared((warps, chunks * SPAN), "float32")
            u = T.alloc_local((V,), "float32")
            du = T.alloc_local((V,), "float32")
            h = T.alloc_local((V,), "float32")
            slope = T.alloc_local((V,), "float32")
            over_all = T.alloc_local((2,), "float32")
            over_chosen = T.alloc_local((2,), "float32")
            expert = T.alloc_var("int32", init=-1)
            seen = T.alloc_var("int32", init=0)
            g = T.alloc_var("float32", init=f(0))
            w = T.alloc_var("float32", init=f(0))
            chosen = T.alloc_var("float32", init=f(0))
            share = T.alloc_var("float32", init=f(0))
            mine = T.alloc_var("float32", init=f(0))
            lane = T.get_thread_binding() % WARP
            warp = T.get_thread_binding() // WARP
            token = block * warps + warp
            # Rows beyond the last are read as the last and not written.
            row = T.alloc_var("int32", init=T.min(token, N - 1))
            if lane < K:
                given = T.alloc_var("int64", init=topk_idx[row, lane])
                g = grad[row, lane]
                w = weights[row, lane]
                if given >= T.int64(0) and given < T.int64(E):
                    expert = T.cast(given, "int32")
            if dense:
                load(u, scores, row, lane)
            if form.aux:
                load(h, grad_sum, T.truncdiv(row, per_sequence), lane)
                seen = T.cast(mask[row], "int32")
            if expert >= 0:
                chosen = scores[row, expert]
            else:
                g = f(0)
                w = f(0)
            for c in tuple(range(chunks)):
                for v in T.vectorized(OWN):
                    rows[warp, c * SPAN + lane * OWN + v] = f(0)
            same = T.alloc_var("uint32")
            same = T.match_any_sync(expert)
            if form.aux:
                dot(over_all, 0, u, None)
                dot(over_all, 1, u, h)
                trees(over_all, lanes)
            if early:
                for e in tuple(range(V)):
                    slope[e] = steep(u[e])
            over_chosen[0] = T.ieee_mul(g, w)
            over_chosen[1] = chosen
            trees(over_chosen, slots)
            below = T.ieee_add(over_chosen[1], f(EPSILON))
            if expert >= 0:
                share = T.ieee_fdiv(T.ieee_sub(T.ieee_mul(scale, g), over_chosen[0]), below)
            mine = T.ieee_add(share, f(0))
            if T.any_sync(expert >= 0 and T.popcount(same) > T.uint32(1)) != 0:
                mine = f(0)
                for k in T.unroll(K):
                    theirs = T.alloc_var("float32")
                    theirs = T.shfl_sync(share, k)
                    if ((same >> T.uint32(k)) & T.uint32(1)) != T.uint32(0):
                        mine = T.ieee_add(mine, theirs)
            if not dense:
                mine = T.ieee_mul(mine, steep(chosen))
            T.sync_warp()
            if expert >= 0 and T.__ffs(same) - 1 == lane:
                rows[warp, expert] = mine
            T.sync_warp()
            for c in tuple(range(chunks)):
                for v in T.vectorized(OWN):
                    du[c * OWN + v] = rows[warp, c * SPAN + lane * OWN + v]
            if form.aux:
                inverse_sum = T.alloc_var("float32", init=f(0))
                if over_all[0] != f(0) and seen != 0:
                    inverse_sum = T.ieee_fdiv(f(1), over_all[0])
                middle = T.alloc_var("float32", init=T.ieee_mul(over_all[1], inverse_sum))
                for e in tuple(range(V)):
                    du[e] = T.ieee_add(du[e], T.ieee_mul(T.ieee_sub(h[e], middle), inverse_sum))
            if form.scoring == "softmax":
                dot(over_all, 0, du, u)
                over_all[1] = f(0)
                trees(over_all, lanes)
                for e in tuple(range(V)):
                    du[e] = T.ieee_mul(u[e], T.ieee_sub(du[e], over_all[0]))
            elif dense:
                for e in tuple(range(V)):
                    if early:
                        du[e] = T.ieee_mul(du[e], slope[e])
                    else:
                        du[e] = T.ieee_mul(du[e], steep(u[e]))
            if token < N:
                for c in tuple(range(0, V, W)):
                    col = c // OWN * SPAN + lane * OWN + c % OWN
                    if col < E:
                        for v in T.vectorized(W):
                            out[row, col + v] = du[c + v]

    return moe_topk_gate_backward
