"""The TileLang program of moe_topk_gate_backward on the Ascend 950.

A core takes tiles of up to ``MAX_ROWS`` tokens of one sequence. A token's choices are the lanes of
one register: what a choice adds to its expert is summed up over equal choices in their order, so
that one scatter stores it. Sums over experts keep the order of the reference: 32 lanes that take
experts by fours, then halves.
"""

from dataclasses import dataclass
from typing import Any

from ascendkit.hardware import UB_BYTES
from tilekernels.gating import EPSILON
from tilekernels.gating.ascend_scoring import scoring_macros
from tilekernels.gating.ascend_select import LANES
from tilekernels.gating.scoring import LN2_HIGH, LN2_LOW, LOG2_E, ROUND
from tilekernels.machine import BLOCK_BYTES
from tilekernels.moe_topk_gate_backward.reference import LANES as SUMS
from tilekernels.moe_topk_gate_backward.reference import WIDTH
from tilekernels.moe_topk_gate_backward.slope import EXPM1, HALF, LARGE, RECIPROCAL, SMALL

STAGES = 2
MAX_ROWS = 16


@dataclass(frozen=True)
class Form:
    """What a program is built for; slots are columns of the weights and of their gradient."""

    num_experts: int
    num_topk: int
    slots: int
    grad_slots: int
    scoring: str
    aux: bool


def columns(num_experts: int) -> int:
    """Experts of a row, rounded up to whole rounds of a sum and so to whole registers."""
    return -(-num_experts // (SUMS * WIDTH)) * SUMS * WIDTH


def ub_bytes(num_experts: int, rows: int) -> int:
    """Bytes of the Unified Buffer that tiles of ``rows`` tokens take, at most."""
    row, small = 4 * columns(num_experts), 4 * LANES
    return row * (rows * (STAGES + 1) + STAGES) + STAGES * rows * 6 * small + 4 * small


def rows_per_tile(num_experts: int) -> int:
    """Tokens of a tile."""
    fits = (r for r in range(MAX_ROWS, 1, -1) if ub_bytes(num_experts, r) <= UB_BYTES)
    return next(fits, 1)


def prim_func(form: Form, num_cores: int) -> Any:
    """The TileLang program: scores (N, E), indices as words (N, 2 K), weights and their gradient
    (N, slots), mask as bytes (N,), gradient of the sums (Q, E) -> (N, E).

    A sequence has ``parts`` tiles of ``rows`` tokens; numbers come from the host, since TileLang
    would repeat the terms that they are made of wherever they occur.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K, P = form.num_experts, form.num_topk, columns(form.num_experts)
    B, registers, rounds = rows_per_tile(E), P // LANES, P // (SUMS * WIDTH)
    m, soft, aux = scoring_macros(), form.scoring == "softmax", form.aux
    f32, i32, u32 = "float32", "int32", "uint32x64"
    N, Q = T.dynamic("num_tokens, num_sequences")

    @T.macro
    def tree(total, count):
        # Halves added; the sum ends in lane 0, and goes to all.
        for half in tuple(count >> i for i in range(1, count.bit_length())):
            above = S.vselr(total[0], S.vadds(S.vci(0, i32), half))
            total[0] = S.vadd(total[0], above)
        return S.vdupv(total[0])

    @T.macro
    def over_experts(a_ub, ar, b_ub, br):
        total = S.alloc_local((1,), f32)
        total[0] = S.vdup(0.0, f32)
        fours = S.vmuls(S.vci(0, i32), WIDTH)
        for i in T.serial(rounds):
            for v in tuple(range(WIDTH)):
                at = S.vadds(fours, i * SUMS * WIDTH + v)
                inside = S.vcmps(S.vsel(at, S.vdup(E, i32), S.vcmps(fours, SUMS * WIDTH, op="lt")),
                                 E, op="lt")  # fmt: skip
                index = T.reinterpret(at, u32)
                # Lanes outside are zeros.
                a = S.vgather2(a_ub[ar, 0], index, inside)
                if b_ub is None:
                    total[0] = S.vadd(total[0], a)
                else:
                    S.vmula(total[0], a, S.vgather2(b_ub[br, 0], index, inside))
        return tree(total, SUMS)

    @T.macro
    def choices(scores_ub, idx_ub, weights_ub, grads_ub, row_ub, du_ub, r, scale):
        # What every choice adds to its expert, then experts that were chosen twice.
        lanes = S.vci(0, i32)
        low, high = S.vld2(idx_ub[r, 0], dist="DINTLV_B32")
        mine = S.vsel(S.vadds(S.vmuls(high, -1), -1), S.vdup(-1, i32), S.vcmps(lanes, K, op="lt"))
        legal = S.vsel(low, S.vdup(-1, i32), S.vcmps(mine, -1, op="eq"))
        at = S.vsel(legal, S.vdup(-1, i32), S.vcmps(legal, E, op="lt"))
        valid = S.vcmps(at, 0, op="ge")
        zero = S.vdup(0.0, f32)
        index = T.reinterpret(S.vmaxs(at, 0), u32)
        grad = S.vsel(S.vld(grads_ub[r, 0]), zero, valid)
        weight = S.vsel(S.vld(weights_ub[r, 0]), zero, valid)
        inner = S.alloc_local((1,), f32)
        chosen = S.alloc_local((1,), f32)
        total = S.alloc_local((1,), f32)
        inner[0] = S.vmul(grad, weight)
        chosen[0] = S.vgather2(scores_ub[r, 0], index, valid)
        count = 1 << (K - 1).bit_length()
        top = S.vsub(S.vmuls(grad, scale), tree(inner, count))
        below = S.vadds(tree(chosen, count), EPSILON)
        share = S.vsel(S.vdiv(top, below, precision="exact"), zero, valid)
        S.vsts(row_ub[0, 0], share)
        S.vsts(row_ub[1, 0], T.reinterpret(at, "float32x64"))
        for j in T.serial(registers):
            S.vsts(du_ub[r, j * LANES], zero)
        S.mem_bar("VST_VLD")
        S.mem_bar("VST_VST")
        total[0] = zero
        for k in T.serial(K):
            other = T.reinterpret(S.vld(row_ub[1, k], dist="BRC_B32"), "int32x64")
            more = S.vadd(total[0], S.vld(row_ub[0, k], dist="BRC_B32"))
            total[0] = S.vsel(more, total[0], S.vcmp(at, other, op="eq"))
        S.vscatter(total[0], du_ub[r, 0], index, valid)
        S.mem_bar("VST_VLD")
        S.mem_bar("VLD_VST")

    @T.macro
    def auxiliary(scores_ub, h_ub, flags_ub, du_ub, r):
        total = over_experts(scores_ub, r, None, 0)
        word = T.reinterpret(S.vld(flags_ub[r], dist="BRC_B8"), "int32x64")
        one, zero = S.vdup(1.0, f32), S.vdup(0.0, f32)
        quotient = S.vdiv(one, total, precision="exact")
        there = S.vsel(quotient, zero, S.vcmps(total, 0.0, op="ne"))
        inverse = S.vsel(there, zero, S.vcmps(word, 0, op="ne"))
        mean = S.vmul(over_experts(scores_ub, r, h_ub, 0), inverse)
        for j in T.serial(registers):
            added = S.vmul(S.vsub(S.vld(h_ub[0, j * LANES]), mean), inverse)
            S.vsts(du_ub[r, j * LANES], S.vadd(S.vld(du_ub[r, j * LANES]), added))
        S.mem_bar("VST_VLD")

    @T.macro
    def slope(y):
        # The sequence of slope.py.
        shifted = S.alloc_local((1,), f32)
        rest = S.alloc_local((1,), f32)
        error = S.alloc_local((1,), f32)
        cube = S.alloc_local((1,), f32)
        inverse = S.alloc_local((1,), f32)
        one = S.vdup(1.0, f32)
        q = S.vmins(S.vmul(y, y), LARGE)
        shifted[0] = S.vdup(ROUND, f32)
        S.vaxpy(shifted[0], q, -LOG2_E)
        n = S.vadds(shifted[0], -ROUND)
        rest[0] = S.vneg(q)
        S.vaxpy(rest[0], n, -LN2_HIGH)
        S.vaxpy(rest[0], n, -LN2_LOW)
        less = S.vmul(rest[0], m.horner(rest[0], EXPM1))
        bits = S.vadds(S.vshls(T.reinterpret(shifted[0], "int32x64"), 23), HALF)
        power = T.reinterpret(bits, "float32x64")
        rest[0] = S.vsub(S.vdup(0.5, f32), power)
        S.vmula(rest[0], S.vneg(power), less)
        divisor = S.vmaxs(y, SMALL)
        minus = S.vneg(divisor)
        guess = S.vsub(S.vdup(RECIPROCAL, i32), T.reinterpret(divisor, "int32x64"))
        inverse[0] = T.reinterpret(guess, "float32x64")
        error[0] = one
        S.vmula(error[0], minus, inverse[0])
        cube[0] = error[0]
        S.vmula(cube[0], error[0], error[0])
        S.vmula(inverse[0], inverse[0], cube[0])
        error[0] = one
        S.vmula(error[0], minus, inverse[0])
        S.vmula(inverse[0], inverse[0], error[0])
        return S.vsel(S.vmuls(y, 0.5), S.vmul(rest[0], inverse[0]), S.vcmps(y, SMALL, op="lt"))

    @T.macro
    def to_logits(scores_ub, du_ub, r):
        if soft:
            mean = over_experts(du_ub, r, scores_ub, r)
            for j in T.serial(registers):
                less = S.vsub(S.vld(du_ub[r, j * LANES]), mean)
                S.vsts(du_ub[r, j * LANES], S.vmul(S.vld(scores_ub[r, j * LANES]), less))
        else:
            for j in T.serial(registers):
                u = S.vld(scores_ub[r, j * LANES])
                if form.scoring == "sigmoid":
                    steep = S.vmul(u, S.vsub(S.vdup(1.0, f32), u))
                    S.vsts(du_ub[r, j * LANES], S.vmul(S.vld(du_ub[r, j * LANES]), steep))
                else:
                    S.vsts(du_ub[r, j * LANES], S.vmul(S.vld(du_ub[r, j * LANES]), slope(u)))

    @T.prim_func
    def gate_backward(
        scores: T.Tensor((N, E), f32),
        topk_idx: T.Tensor((N, 2 * K), i32),
        topk_weights: T.Tensor((N, form.slots), f32),
        grad_topk_weights: T.Tensor((N, form.grad_slots), f32),
        mask: T.Tensor((N,), "uint8"),
        grad_scores_sum: T.Tensor((Q, E), f32),
        out: T.Tensor((N, E), f32),
        scale: T.float32,
        per_sequence: T.int32,
        rows: T.int32,
        parts: T.int32,
        tiles: T.int32,
    ):
        with T.Kernel(num_cores) as core:
            scores_ub = T.alloc_shared((B, P), f32)
            du_ub = T.alloc_shared((B, P), f32)
            h_ub = T.alloc_shared((1, P), f32)
            idx_ub = T.alloc_shared((B, 2 * LANES), i32)
            weights_ub = T.alloc_shared((B, LANES), f32)
            grads_ub = T.alloc_shared((B, LANES), f32)
            row_ub = T.alloc_shared((2, LANES), f32)
            flags_ub = T.alloc_shared((BLOCK_BYTES,), "uint8")
            T.annotate_buffer_versions({scores_ub: STAGES})
            for tile in T.Persistent([tiles], num_cores, core, group_size=1, num_stages=STAGES):
                sequence = T.truncdiv(tile, parts)
                begin = (tile - sequence * parts) * rows
                row = sequence * per_sequence + begin
                valid = T.min(rows, per_sequence - begin)
                T.copy(scores[row : row + valid, :], scores_ub[:valid, :E])
                T.copy(topk_idx[row : row + valid, :], idx_ub[:valid, : 2 * K])
                T.copy(topk_weights[row : row + valid, :K], weights_ub[:valid, :K])
                T.copy(grad_topk_weights[row : row + valid, :K], grads_ub[:valid, :K])
                if aux:
                    T.copy(mask[row : row + valid], flags_ub[:valid])
                    T.copy(grad_scores_sum[sequence, :], h_ub[0, :E])
                with T.SimdVF():
                    for r in T.serial(valid):
                        choices(scores_ub, idx_ub, weights_ub, grads_ub, row_ub, du_ub, r, scale)
                        if aux:
                            auxiliary(scores_ub, h_ub, flags_ub, du_ub, r)
                        to_logits(scores_ub, du_ub, r)
                T.copy(du_ub[:valid, :E], out[row : row + valid, :])

    return gate_backward
