"""Ranks of experts from logits on the Ascend 950's vector cores, row by row of a tile."""

from types import SimpleNamespace
from typing import Any

from tilekernels.gating.ascend_scoring import scoring_macros
from tilekernels.gating.ascend_select import LANES, registers_of
from tilekernels.gating.gate import Gate

IMAGE, MASK, FIXED, RANDOM = range(4)
FLAGS = 4
"""Tensors of one byte a token, rows of a tile of flags."""


def rank_macros(gate: Gate) -> Any:
    """``rank(x, u, bias, flags, r)``: logits in row r of ``x`` become ranks, scores go to ``u``;
    ``drop(x, kept, group, r)``: ranks outside the groups that a token may use become -inf."""
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, registers, m = gate.num_experts, registers_of(gate.num_experts), scoring_macros()
    has, score = gate.options.__contains__, m.of.get(gate.scoring)
    f32, i32 = "float32", "int32"

    @T.macro
    def flag(flags_ub, which, r, op):
        word = T.reinterpret(S.vld(flags_ub[which, r], dist="BRC_B8"), "int32x64")
        return S.vcmps(word, 0, op=op)

    @T.macro
    def biased(value, bias_ub, flags_ub, r, j):
        added = S.vdup(0.0, f32)
        if has("bias"):
            added = S.vld(bias_ub[0, j * LANES])
        if has("image"):
            added = S.vsel(S.vld(bias_ub[1, j * LANES]), added, flag(flags_ub, IMAGE, r, "ne"))
        return S.vadd(value, added)

    @T.macro
    def keep(u_ub, u, flags_ub, r, j):
        # Scores of tokens that are masked or random are zeros.
        kept = u
        if has("mask"):
            kept = S.vsel(kept, S.vdup(0.0, f32), flag(flags_ub, MASK, r, "ne"))
        if has("random"):
            kept = S.vsel(kept, S.vdup(0.0, f32), flag(flags_ub, RANDOM, r, "eq"))
        S.vsts(u_ub[r, j * LANES], kept)

    @T.macro
    def rank(x_ub, u_ub, bias_ub, flags_ub, r):
        for j in T.serial(registers):
            u = score(m.finite(S.vld(x_ub[r, j * LANES])))
            S.vsts(x_ub[r, j * LANES], biased(u, bias_ub, flags_ub, r, j))
            keep(u_ub, u, flags_ub, r, j)

    @T.macro
    def rank_softmax(x_ub, u_ub, bias_ub, flags_ub, r):
        largest = S.alloc_local((1,), f32)
        high = S.alloc_local((1,), i32)
        low = S.alloc_local((1,), i32)
        largest[0] = S.vdup(-T.infinity(f32), f32)
        high[0] = S.vdup(0, i32)
        low[0] = S.vdup(0, i32)
        for j in T.serial(registers):
            inside = S.vcmps(S.vadds(S.vci(0, i32), j * LANES), E, op="lt")
            x = S.vsel(m.finite(S.vld(x_ub[r, j * LANES])), largest[0], inside)
            largest[0] = S.vmax(largest[0], x)
        largest[0] = S.vdupv(S.vcmax(largest[0]))
        for j in T.serial(registers):
            inside = S.vcmps(S.vadds(S.vci(0, i32), j * LANES), E, op="lt")
            x = m.finite(S.vld(x_ub[r, j * LANES]))
            e = S.vsel(m.exp(S.vsub(x, largest[0])), S.vdup(0.0, f32), inside)
            m.add_parts(e, high, low)
            S.vsts(u_ub[r, j * LANES], e)
            S.vsts(x_ub[r, j * LANES], biased(x, bias_ub, flags_ub, r, j))
        total = m.whole_of(high, low)
        S.mem_bar("VST_VLD")
        for j in T.serial(registers):
            u = S.vdiv(S.vld(u_ub[r, j * LANES]), total, precision="exact")
            keep(u_ub, u, flags_ub, r, j)

    @T.macro
    def drop(x_ub, kept_ub, group_ub, r):
        for j in T.serial(registers):
            group = T.reinterpret(S.vld(group_ub[j * LANES]), "uint32x64")
            on = S.vcmps(S.vgather2(kept_ub[r, 0], group), 0, op="ne")
            ranked = S.vld(x_ub[r, j * LANES])
            S.vsts(x_ub[r, j * LANES], S.vsel(ranked, S.vdup(-T.infinity(f32), f32), on))
        S.mem_bar("VST_VLD")

    return SimpleNamespace(rank=rank_softmax if gate.scoring == "softmax" else rank, drop=drop)
