"""Both gates on the Ascend 950, in TileLang: vector registers score and select, threads weigh.

A core takes tiles of up to ``MAX_ROWS`` tokens. SIMD code turns logits into scores and ranks, and
finds the best of every row (``ascend_select.py``). Then a warp a token, a lane a slot: the sum of
the chosen scores, weights, where the experts live, fixed and random routing. Groups are judged by
a warp a token too, between scoring and selection. The physical map stays in global memory.
"""

from typing import Any

from ascendkit.hardware import UB_BYTES_SIMT
from tilekernels.gating import EPSILON, PRIME
from tilekernels.gating.ascend_groups import group_macros
from tilekernels.gating.ascend_rank import FIXED, FLAGS, IMAGE, MASK, RANDOM, rank_macros
from tilekernels.gating.ascend_select import LANES, MAX_REGISTERS, registers_of, selection
from tilekernels.gating.gate import Gate, limited
from tilekernels.gating.random_draw import draw_macro
from tilekernels.machine import BLOCK_BYTES, WARP, padded

STAGES = 2
MAX_ROWS = 16


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


def prim_func(gate: Gate, num_cores: int) -> Any:
    """The TileLang program of a gate; flags are bytes, a tensor that an option lacks is None.

    There are ``tiles`` of ``rows`` tokens; numbers come from the host, since TileLang would repeat
    the terms that they are made of wherever they occur.
    """
    from tilelang.ascend import language as T
    from tilelang.ascend.language import simd as S

    E, K, D, slots = gate.num_experts, gate.num_topk, gate.copies, gate.num_topk + gate.shared
    logical, B = E + gate.shared, rows_per_tile(gate)
    registers = registers_of(E)
    P, wide = LANES * registers, registers > MAX_REGISTERS
    s, ranks = selection(E, K, words=1), rank_macros(gate)
    has, cut = gate.options.__contains__, limited(gate)
    num_groups, kept_groups = gate.groups
    per_group = E // num_groups
    g = group_macros(num_groups, per_group)
    draw = draw_macro(T, slots, T.warp_reduce_min) if has("random") else None
    f32, i32 = "float32", "int32"
    N, step = T.dynamic("num_tokens, unmapped_stride")

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
        rows: T.int32,
        tiles: T.int32,
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
            for tile in T.Persistent([tiles], num_cores, core, group_size=1, num_stages=STAGES):
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
                        ranks.rank(x_ub, u_ub, bias_ub, flags_ub, r)
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
                            ranks.drop(x_ub, kept_ub, group_ub, r)
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
