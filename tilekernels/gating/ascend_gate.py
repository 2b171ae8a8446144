"""Both gates on the Ascend 950, in TileLang: vector registers score and select, threads weigh.

A core takes tiles of up to ``MAX_ROWS`` tokens. SIMD code turns logits into scores and ranks, and
finds the best of every row (``ascend_select.py``). Then a warp a token, a lane a slot: the sum of
the chosen scores, weights, where the experts live, fixed and random routing. Groups are judged by
a warp a token too, between scoring and selection. The physical map stays in global memory.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.hardware import UB_BYTES_SIMT
from ascendkit.op import Support
from tilekernels.gating import EPSILON, PRIME, SLOTS
from tilekernels.gating.ascend_groups import group_macros
from tilekernels.gating.ascend_scoring import scoring_macros
from tilekernels.gating.ascend_select import LANES, MAX_REGISTERS, registers_of, selection
from tilekernels.gating.gate import Gate, limited
from tilekernels.gating.random_draw import draw_macro
from tilekernels.gating.scoring import MAX_SUMMED
from tilekernels.machine import BLOCK_BYTES, WARP, compile_ascend, padded, vector_cores

if TYPE_CHECKING:
    import torch

STAGES = 2
MAX_ROWS = 16
IMAGE, MASK, FIXED, RANDOM = range(4)
FLAGS = 4
"""Tensors of one byte a token."""

PASSES = {"TL_DISABLE_THREAD_STORAGE_SYNC": True}
"""Threads exchange values by the collectives of a warp only: no barrier in the branches they take
apart."""


def ub_bytes(gate: Gate, rows: int) -> int:
    """Bytes of the Unified Buffer that tiles of ``rows`` tokens take."""
    row, slots = 4 * LANES * registers_of(gate.num_experts), gate.num_topk + gate.shared
    small = 4 * (2 * LANES + padded(2 * slots) + padded(slots) + 2 * padded(2 * gate.num_topk))
    scored = 2 if "scores" in gate.options else 1
    whole = 2 + (gate.num_experts > LANES * MAX_REGISTERS) + limited(gate)
    return row * (rows * (STAGES + scored) + whole) + STAGES * (rows * small + FLAGS * BLOCK_BYTES)


def rows_per_tile(gate: Gate) -> int:
    """Tokens of a tile; 0 where not even one fits."""
    fits = (r for r in range(MAX_ROWS, 0, -1) if ub_bytes(gate, r) <= UB_BYTES_SIMT)
    return next(fits, 0)


def supports(num_experts: int) -> Support:
    """Whether a token with every option of both gates fits the Unified Buffer."""
    room = SLOTS - 2
    every = Gate(num_experts, room, 2, "", frozenset(("scores",)), groups=(2, 1))
    if num_experts > MAX_SUMMED:
        return Support(False, f"{num_experts} experts; sums of a softmax hold {MAX_SUMMED}")
    if not rows_per_tile(every):
        need = f"a token takes {ub_bytes(every, 1)} bytes"
        return Support(False, f"{num_experts} experts: {need} of the {UB_BYTES_SIMT} there are")
    return Support(True)


def launch(
    gate: Gate,
    given: "Mapping[str, torch.Tensor | None]",
    out: "tuple[torch.Tensor, torch.Tensor]",
    scale: float,
    ep_rank: int,
    local: tuple[int, int, int] = (1, 0, 1),
) -> None:
    """Run a gate.

    Args:
        given: arguments by name: logits, and what the gate's options are.
        out: (topk_idx, topk_weights).
        local: physical experts of a rank, and tensor-parallel rank and ranks.
    """
    import torch

    logits, unmapped, count = given["logits"], given.get("unmapped"), given.get("count")
    flags = (given.get(n) for n in ("image", "mask", "fixed"))
    image, mask, fixed = (None if t is None else t.view(torch.uint8) for t in flags)
    random, total = given.get("random"), None
    if random is not None:
        random, logical = random.view(torch.uint8), gate.num_experts + gate.shared
        if count is None:
            total = torch.full((1,), logical, dtype=torch.int32, device=random.device)
        else:
            total = count.clamp(1, gate.copies).sum(dtype=torch.int32).view(1)
    if unmapped is not None:
        # Of one column the stride says nothing, but a view as words needs 1.
        unmapped = unmapped.as_strided(unmapped.shape, (unmapped.stride(0), 1)).view(torch.int32)
    found = kernel(gate, vector_cores(logits), logits.device.type == "cpu")
    found(
        logits, given.get("bias"), given.get("image_bias"), image, mask, fixed,
        given.get("physical"), count, out[0].view(torch.int32), unmapped, out[1],
        given.get("scores"), random, total, scale, ep_rank, *local,
    )  # fmt: skip


@lru_cache(maxsize=256)
def kernel(gate: Gate, num_cores: int, emulated: bool) -> Any:
    """The compiled kernel; one for the NPU and one for the emulator."""
    return compile_ascend(prim_func(gate, num_cores), **PASSES)


def prim_func(gate: Gate, num_cores: int) -> Any:
    """The TileLang program of a gate; flags are bytes, a tensor that an option lacks is None."""
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K, D, slots = gate.num_experts, gate.num_topk, gate.copies, gate.num_topk + gate.shared
    logical, B = E + gate.shared, rows_per_tile(gate)
    registers = registers_of(E)
    P, wide = LANES * registers, registers > MAX_REGISTERS
    s, m = selection(E, K, words=1), scoring_macros()
    has, soft, cut = gate.options.__contains__, gate.scoring == "softmax", limited(gate)
    score = m.of.get(gate.scoring)
    num_groups, kept_groups = gate.groups
    per_group = E // num_groups
    g = group_macros(num_groups, per_group)
    draw = draw_macro(T, slots, T.warp_reduce_min) if has("random") else None
    f32, i32 = "float32", "int32"
    N, step = T.dynamic("num_tokens, unmapped_stride")

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

    @T.macro
    def select(x_ub, keys_ub, winners_ub, r):
        result = S.alloc_local((1,), i32)
        result[0] = S.vdup(0, i32)
        if wide:
            winner = S.alloc_local((1,), i32)
            winner[0] = S.vdup(-1, i32)
            # The keys of the row before have been read.
            S.mem_bar("VLD_VST")
            s.make_keys(x_ub, r, keys_ub)
            for k in T.serial(K):
                s.take_wide(k, keys_ub, winner, result)
        else:
            key = S.alloc_local((registers,), i32)
            index = S.alloc_local((registers,), i32)
            s.load_keys(x_ub, r, 0, key, index)
            s.sort_columns(0, key, index)
            for k in T.serial(K):
                s.take(k, 0, key, index, result)
        S.vsts(winners_ub[r, 0], result[0])

    @T.macro
    def within_groups(x_ub, kept_ub, r, lane):
        total = T.alloc_local((1,), f32)
        open_ = T.alloc_local((1,), i32)
        winner = T.alloc_local((1,), i32)
        open_[0] = T.if_then_else(lane < num_groups, 1, 0)
        g.best_sum(x_ub, r, lane, min(2, per_group), total)
        for _ in T.serial(kept_groups):
            g.take(lane, total, open_, winner)
        kept_ub[r, lane] = T.if_then_else(lane < num_groups, 1 - open_[0], 0)

    @T.macro
    def copies_of(logical_count, e):
        return T.max(T.min(logical_count[e], D), 1)

    @T.macro
    def locate(to_physical_map, logical_count, e, token, ep_rank, local):
        # Where a logical expert is: -1 stays -1. Remainders first: no product leaves 32 bits.
        at = T.alloc_var(i32, init=e)
        if has("physical"):
            if e >= 0:
                c = copies_of(logical_count, e)
                turn = T.truncmod(T.truncmod(token, c) * T.truncmod(PRIME, c), c)
                at = to_physical_map[e, T.truncmod(turn + T.truncmod(ep_rank, c), c)]
        if gate.parallel:
            if at >= 0:
                per, tp_rank, num_tp = local
                if T.truncmod(T.truncdiv(at, per), num_tp) != tp_rank:
                    at = -1
                else:
                    at = at - tp_rank * per
                    at = at - T.truncdiv(at, per * num_tp) * (per * num_tp - per)
        return at

    @T.macro
    def put(words_ub, r, at, value):
        # An int64 is two words; the upper one repeats the sign.
        words_ub[r, 2 * at] = value
        words_ub[r, 2 * at + 1] = value >> 31

    @T.prim_func
    def gate_kernel(
        logits: T.Tensor((N, E), f32),
        bias: T.Tensor((E,), f32),
        image_bias: T.Tensor((E,), f32),
        image_token_mask: T.Tensor((N,), "uint8"),
        mask: T.Tensor((N,), "uint8"),
        fix_routing_mask: T.Tensor((N,), "uint8"),
        to_physical_map: T.Tensor((logical, D), i32),
        logical_count: T.Tensor((logical,), i32),
        topk_idx: T.Tensor((N, 2 * slots), i32),
        unmapped: T.StridedTensor((N, 2 * K), (step, 1), i32),
        topk_weights: T.Tensor((N, slots), f32),
        scores: T.Tensor((N, E), f32),
        force_random: T.Tensor((N,), "uint8"),
        num_physical: T.Tensor((1,), i32),
        scale: T.float32,
        ep_rank: T.int32,
        per: T.int32,
        tp_rank: T.int32,
        num_tp: T.int32,
    ):
        with T.Kernel(num_cores) as core:
            x_ub = T.alloc_shared((B, P), f32)
            u_ub = T.alloc_shared((B, P), f32)
            bias_ub = T.alloc_shared((2, P), f32)
            keys_ub = T.alloc_shared((P,), i32)
            group_ub = T.alloc_shared((P,), i32)
            kept_ub = T.alloc_shared((B, LANES), i32)
            winners_ub = T.alloc_shared((B, LANES), i32)
            flags_ub = T.alloc_shared((FLAGS, BLOCK_BYTES), "uint8")
            given_ub = T.alloc_shared((B, padded(2 * K)), i32)
            unmapped_ub = T.alloc_shared((B, padded(2 * K)), i32)
            idx_ub = T.alloc_shared((B, padded(2 * slots)), i32)
            weights_ub = T.alloc_shared((B, padded(slots)), f32)
            T.annotate_buffer_versions({x_ub: STAGES})
            if has("bias"):
                T.copy(bias, bias_ub[0, :E])
            if has("image"):
                T.copy(image_bias, bias_ub[1, :E])
            if cut:
                with T.SimtVF(threads=128):
                    for e in T.Parallel(P):
                        group_ub[e] = T.min(e // per_group, num_groups - 1)
            rows = T.min(B, T.max(1, T.ceildiv(N, num_cores)))
            for tile in T.Persistent(
                [T.ceildiv(N, rows)], num_cores, core, group_size=1, num_stages=STAGES
            ):
                row = tile * rows
                valid = T.min(rows, N - row)
                T.copy(logits[row : row + valid, :], x_ub[:valid, :E])
                if has("image"):
                    T.copy(image_token_mask[row : row + valid], flags_ub[IMAGE, :valid])
                if has("mask"):
                    T.copy(mask[row : row + valid], flags_ub[MASK, :valid])
                if has("random"):
                    T.copy(force_random[row : row + valid], flags_ub[RANDOM, :valid])
                if has("fixed"):
                    T.copy(fix_routing_mask[row : row + valid], flags_ub[FIXED, :valid])
                    T.copy(unmapped[row : row + valid, :], given_ub[:valid, : 2 * K])
                with T.SimdVF():
                    for r in T.serial(valid):
                        if soft:
                            rank_softmax(x_ub, u_ub, bias_ub, flags_ub, r)
                        else:
                            rank(x_ub, u_ub, bias_ub, flags_ub, r)
                        if not cut:
                            S.mem_bar("VST_VLD")
                            select(x_ub, keys_ub, winners_ub, r)
                if cut:
                    with T.SimtVF(threads=B * WARP):
                        r = T.get_thread_binding(0) // WARP
                        if r < valid:
                            within_groups(x_ub, kept_ub, r, T.get_thread_binding(0) % WARP)
                    with T.SimdVF():
                        for r in T.serial(valid):
                            drop(x_ub, kept_ub, group_ub, r)
                            select(x_ub, keys_ub, winners_ub, r)
                with T.SimtVF(threads=B * WARP):
                    r = T.get_thread_binding(0) // WARP
                    lane = T.get_thread_binding(0) % WARP
                    token = row + r
                    expert = T.alloc_var(i32, init=-1)
                    u = T.alloc_var(f32, init=0.0)
                    quiet = T.alloc_var(i32, init=0)
                    at_random = T.alloc_var(i32, init=0)
                    if r < valid:
                        if has("random"):
                            at_random = T.cast(flags_ub[RANDOM, r], i32)
                            quiet = at_random
                        if has("mask"):
                            if flags_ub[MASK, r] == T.uint8(0):
                                quiet = 1
                                at_random = 0
                        if lane < K:
                            expert = winners_ub[r, lane]
                            if has("fixed"):
                                if flags_ub[FIXED, r] != T.uint8(0):
                                    expert = -1
                                    chosen = given_ub[r, 2 * lane]
                                    # The high word of an index in range is zero.
                                    if given_ub[r, 2 * lane + 1] == 0 and chosen >= 0:
                                        if chosen < E:
                                            expert = chosen
                            if quiet != 0:
                                expert = -1
                            if expert >= 0:
                                u = u_ub[r, expert]
                            if has("unmapped"):
                                put(unmapped_ub, r, lane, expert)
                        total = T.warp_reduce_sum(u) + T.float32(EPSILON)
                        if lane < slots:
                            weight = T.alloc_var(f32, init=u / total * scale)
                            if lane >= K:
                                expert = T.if_then_else(quiet != 0, -1, E + lane - K)
                                weight = T.if_then_else(quiet != 0, T.float32(0), T.float32(1))
                            where = locate(
                                to_physical_map, logical_count, expert, token, ep_rank,
                                (per, tp_rank, num_tp),
                            )  # fmt: skip
                            put(idx_ub, r, lane, where)
                            weights_ub[r, lane] = weight
                        if has("random"):
                            if at_random != 0:
                                found = T.alloc_local((1,), i32)
                                drawn = T.alloc_local((1,), f32)
                                draw(token, lane, ep_rank, num_physical[0], found, drawn)
                                if lane < slots:
                                    put(idx_ub, r, lane, found[0])
                                    weights_ub[r, lane] = drawn[0]
                T.copy(idx_ub[:valid, : 2 * slots], topk_idx[row : row + valid, :])
                T.copy(weights_ub[:valid, :slots], topk_weights[row : row + valid, :])
                if has("unmapped"):
                    T.copy(unmapped_ub[:valid, : 2 * K], unmapped[row : row + valid, :])
                if has("scores"):
                    T.copy(u_ub[:valid, :E], scores[row : row + valid, :])

    return gate_kernel
