"""Both gates on NVIDIA GPUs, in TileLang: score, select, weigh, and say where the experts live.

A token has 16 or 32 lanes of a warp. All of them go the whole way, tokens that are masked, fixed or
random too: ways differ at the end only, so that the warp's collectives stay whole. Scores of chosen
experts are computed again from the logits rather than kept: that costs a lane some forty
instructions, and no shared memory.
"""

from functools import lru_cache, partial
from typing import Any

from tilekernels.gating import EPSILON, PRIME
from tilekernels.gating.cuda_scoring import scoring_macros
from tilekernels.gating.cuda_select import MAX_SCORES, PASSES, Plan, selection
from tilekernels.gating.gate import Gate, limited
from tilekernels.gating.random_draw import draw_macro
from tilekernels.machine import WARP, compile_cuda

MAX_EXPERTS = WARP * MAX_SCORES
FEW_TOKENS = 2048
"""Up to here a whole warp a token, where a token has enough logits for it."""


def plan(gate: Gate, num_tokens: int) -> Plan:
    """The layout of a gate."""
    half, experts = WARP // 2, gate.num_experts
    needed = max(gate.num_topk + gate.shared, gate.groups[0] if limited(gate) else 0)
    few = num_tokens <= FEW_TOKENS and experts > 4 * WARP
    lanes = WARP if few or needed > half or experts > half * MAX_SCORES else half
    fits = (w for w in (4, 2) if experts % w == 0 and experts >= w * lanes)
    groups = -(-3 * gate.num_topk // (2 * lanes))
    capacity = gate.num_topk + (WARP if gate.num_topk <= half else 2 * WARP)
    return Plan(lanes, groups, next(fits, 1), 4, capacity)


@lru_cache(maxsize=256)
def kernel(gate: Gate, layout: Plan, arch: str = "") -> Any:
    """The compiled kernel; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    return compile_cuda(prim_func(gate, layout), arch, **PASSES)


def prim_func(gate: Gate, layout: Plan) -> Any:
    """The TileLang program of a gate."""
    from tilelang import language as T

    E, K, S, D = gate.num_experts, gate.num_topk, gate.shared, gate.copies
    s, m = selection(E, K, layout), scoring_macros()
    L, W, logical = s.L, s.W, E + S
    has = gate.options.__contains__
    soft = gate.scoring == "softmax"
    score = m.of.get(gate.scoring)
    num_groups, kept_groups = gate.groups
    per_group = E // num_groups
    cut = limited(gate)
    N, step = T.dynamic("num_tokens"), T.dynamic("unmapped_stride")
    inf = T.infinity("float32")

    @T.macro
    def least_of(value):
        found = T.alloc_var("int32", init=value)
        for shift in s.shifts:
            found = T.min(found, T.shfl_xor(found, shift))
        return found

    draw = draw_macro(T, K + S, least_of) if has("random") else None

    @T.macro
    def read(logits, row, x, first, col):
        for v in T.vectorized(W):
            x[first + v] = logits[row, col + v]

    @T.macro
    def biased(value, bias, image_bias, is_image, col):
        # One value at a time; `rank` below loads whole vectors.
        added = T.alloc_var("float32", init=T.float32(0))
        if has("bias"):
            added = bias[col]
        if has("image"):
            if is_image[0] != 0:
                added = image_bias[col]
        return T.ieee_add(value, added)

    @T.macro
    def rank(x, bias, image_bias, is_image, scores, row, inside, quiet, stats, first, col):
        added = T.alloc_local((W,), "float32")
        u = T.alloc_local((W,), "float32")
        if has("bias"):
            for v in T.vectorized(W):
                added[v] = bias[col + v]
        else:
            for v in tuple(range(W)):
                added[v] = T.float32(0)
        if has("image"):
            if is_image[0] != 0:
                for v in T.vectorized(W):
                    added[v] = image_bias[col + v]
        for v in tuple(range(W)):
            if soft:
                if has("scores"):
                    u[v] = T.ieee_fdiv(m.exp(T.ieee_sub(x[first + v], stats[0])), stats[1])
            else:
                u[v] = score(m.finite(x[first + v]))
                x[first + v] = u[v]
            x[first + v] = T.ieee_add(x[first + v], added[v])
        if has("scores"):
            if quiet[0] != 0:
                for v in tuple(range(W)):
                    u[v] = T.float32(0)
            if inside:
                for v in T.vectorized(W):
                    scores[row, col + v] = u[v]

    @T.macro
    def clamp(x, first, col):
        for v in tuple(range(W)):
            x[first + v] = m.finite(x[first + v])

    @T.macro
    def sum_up(x, stats, sums, first, col):
        for v in tuple(range(W)):
            m.add_parts(m.exp(T.ieee_sub(x[first + v], stats[0])), sums)

    @T.macro
    def statistics(x, stats, lane):
        # Of a softmax: the largest logit, and the sum of exponentials against it.
        sums = T.alloc_local((2,), "int32")
        s.each(lane, partial(clamp, x))
        stats[0] = s.tree([x[e] for e in range(s.V)])
        for shift in s.shifts:
            stats[0] = T.max(stats[0], T.shfl_xor(stats[0], shift))
        sums[0] = 0
        sums[1] = 0
        s.each(lane, partial(sum_up, x, stats, sums))
        for i in tuple(range(2)):
            for shift in s.shifts:
                sums[i] = sums[i] + T.shfl_xor(sums[i], shift)
        stats[1] = m.whole_of(sums)

    @T.macro
    def score_at(logits, row, col, stats):
        x = m.finite(logits[row, col])
        if soft:
            return T.ieee_fdiv(m.exp(T.ieee_sub(x, stats[0])), stats[1])
        else:
            return score(x)

    @T.macro
    def rank_at(logits, bias, image_bias, is_image, row, col):
        x = m.finite(logits[row, col])
        if soft:
            return biased(x, bias, image_bias, is_image, col)
        else:
            return biased(score(x), bias, image_bias, is_image, col)

    @T.macro
    def store(room, slot, x, first, col):
        for v in tuple(range(W)):
            room[slot * E + col + v] = x[first + v]

    @T.macro
    def drop(x, bits, first, col):
        for v in tuple(range(W)):
            if ((bits[0] >> T.cast((col + v) // per_group, "uint32")) & T.uint32(1)) == T.uint32(0):
                x[first + v] = -inf

    @T.macro
    def within_groups(x, room, sums, slot, lane):
        # A lane a group: the sum of its two best, and how many groups have a larger one.
        best = T.alloc_var("float32", init=-inf)
        second = T.alloc_var("float32", init=-inf)
        larger = T.alloc_var("int32", init=0)
        bits = T.alloc_local((1,), "uint32")
        s.each(lane, partial(store, room, slot, x))
        T.sync_warp()
        if lane < num_groups:
            for i in T.serial(per_group):
                # Lanes start at different members, so that they meet in no bank.
                at = (i + lane) % per_group
                value = T.max(room[slot * E + lane * per_group + at], -inf)
                second = T.max(second, T.min(best, value))
                best = T.max(best, value)
            if per_group > 1:
                best = T.max(T.ieee_add(best, second), -inf)
            sums[slot * num_groups + lane] = best
        T.sync_warp()
        if lane < num_groups:
            for i in T.serial(num_groups):
                other = sums[slot * num_groups + i]
                if other > best or (other == best and i < lane):
                    larger = larger + 1
        votes = T.cast(T.ballot(lane < num_groups and larger < kept_groups), "uint32")
        bits[0] = votes >> T.cast(T.get_thread_binding() % WARP - lane, "uint32")
        s.each(lane, partial(drop, x, bits))

    @T.macro
    def keep(winners, slot, place, col):
        winners[slot * K + place] = col

    @T.macro
    def copies_of(logical_count, e):
        return T.max(T.min(logical_count[e], D), 1)

    @T.macro
    def locate(to_physical_map, logical_count, e, token, ep_rank, local):
        # Where a logical expert is: -1 stays -1. Remainders first: no product leaves 32 bits.
        at = T.alloc_var("int32", init=e)
        if has("physical"):
            if e >= 0:
                c = copies_of(logical_count, e)
                turn = (token % c) * (PRIME % c) % c
                at = to_physical_map[e, (turn + ep_rank % c) % c]
        if gate.parallel:
            if at >= 0:
                per, tp_rank, num_tp = local
                if at // per % num_tp != tp_rank:
                    at = -1
                else:
                    at = at - tp_rank * per
                    at = at - at // (per * num_tp) * (per * num_tp - per)
        return at

    @T.prim_func
    def gate_kernel(
        logits: T.Tensor((N, E), "float32"),
        bias: T.Tensor((E,), "float32"),
        image_bias: T.Tensor((E,), "float32"),
        image_token_mask: T.Tensor((N,), "bool"),
        mask: T.Tensor((N,), "bool"),
        fix_routing_mask: T.Tensor((N,), "bool"),
        to_physical_map: T.Tensor((logical, D), "int32"),
        logical_count: T.Tensor((logical,), "int32"),
        topk_idx: T.Tensor((N, K + S), "int64"),
        unmapped: T.StridedTensor((N, K), (step, 1), "int64"),
        topk_weights: T.Tensor((N, K + S), "float32"),
        scores: T.Tensor((N, E), "float32"),
        force_random: T.Tensor((N,), "bool"),
        scale: T.float32,
        ep_rank: T.int32,
        per: T.int32,
        tp_rank: T.int32,
        num_tp: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, s.tokens), threads=s.threads) as block:
            keys = T.alloc_shared((s.scratch,), "int64")
            winners = T.alloc_shared((s.tokens * K,), "int32")
            x = T.alloc_local((s.V,), "float32")
            stats = T.alloc_local((2,), "float32")
            is_image = T.alloc_local((1,), "int32")
            quiet = T.alloc_local((1,), "int32")
            u = T.alloc_var("float32", init=T.float32(0))
            total = T.alloc_var("float32")
            expert = T.alloc_var("int32", init=-1)
            at_random = T.alloc_var("int32", init=0)
            lane = T.get_thread_binding() % L
            slot = T.get_thread_binding() // L
            token = block * s.tokens + slot
            inside = token < N
            # Rows beyond the last are read as the last and not written.
            row = T.alloc_var("int32", init=T.min(token, N - 1))
            s.load(x, lane, partial(read, logits, row))
            quiet[0] = 0
            is_image[0] = 0
            if has("image"):
                is_image[0] = T.cast(image_token_mask[row], "int32")
            if has("random"):
                at_random = T.cast(force_random[row], "int32")
                quiet[0] = at_random
            if has("mask"):
                if not mask[row]:
                    quiet[0] = 1
                    at_random = 0
            if soft:
                statistics(x, stats, lane)
            s.each(
                lane,
                partial(rank, x, bias, image_bias, is_image, scores, row, inside, quiet, stats),
            )
            if cut:
                room = T.alloc_shared((s.tokens * E,), "float32")
                sums = T.alloc_shared((s.tokens * num_groups,), "float32")
                within_groups(x, room, sums, slot, lane)
            s.select(
                x, keys, slot, lane,
                partial(rank_at, logits, bias, image_bias, is_image, row),
                partial(keep, winners, slot),
            )  # fmt: skip
            T.sync_warp()
            if lane < K:
                expert = winners[slot * K + lane]
                if has("fixed"):
                    if fix_routing_mask[row]:
                        given = unmapped[row, lane]
                        expert = -1
                        if given >= T.int64(0) and given < T.int64(E):
                            expert = T.cast(given, "int32")
                if expert >= 0:
                    u = score_at(logits, row, expert, stats)
            total = u
            for shift in tuple(reversed(s.shifts)):
                total = T.ieee_add(total, T.shfl_xor(total, shift))
            total = T.ieee_add(total, T.float32(EPSILON))
            if lane < K and inside:
                if quiet[0] != 0:
                    expert = -1
                    u = T.float32(0)
                if has("unmapped"):
                    unmapped[row, lane] = T.cast(expert, "int64")
                at = locate(
                    to_physical_map, logical_count, expert, token, ep_rank, (per, tp_rank, num_tp)
                )
                topk_idx[row, lane] = T.cast(at, "int64")
                topk_weights[row, lane] = T.ieee_mul(T.ieee_fdiv(u, total), scale)
            if S > 0:
                if lane < S and inside:
                    expert = E + lane
                    u = T.float32(1)
                    if quiet[0] != 0:
                        expert = -1
                        u = T.float32(0)
                    where = locate(
                        to_physical_map, logical_count, expert, token, ep_rank,
                        (per, tp_rank, num_tp),
                    )  # fmt: skip
                    topk_idx[row, K + lane] = T.cast(where, "int64")
                    topk_weights[row, K + lane] = u
            if has("random"):
                if T.any_sync(at_random != 0) != 0:
                    found = T.alloc_local((1,), "int32")
                    weight = T.alloc_local((1,), "float32")
                    experts = T.alloc_var("int32", init=logical)
                    if has("physical"):
                        experts = 0
                        for i in T.serial(T.ceildiv(logical, L)):
                            if i * L + lane < logical:
                                experts = experts + copies_of(logical_count, i * L + lane)
                        for shift in s.shifts:
                            experts = experts + T.shfl_xor(experts, shift)
                    draw(token, lane, ep_rank, experts, found, weight)
                    if at_random != 0 and lane < K + S and inside:
                        topk_idx[row, lane] = T.cast(found[0], "int64")
                        topk_weights[row, lane] = weight[0]

    return gate_kernel
