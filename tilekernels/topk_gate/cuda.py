"""topk_gate on NVIDIA GPUs, in TileLang: a threshold first, then a sort of what passes it.

``lanes`` lanes of a warp share a token; each holds its scores in registers, split into ``groups``.

1. *Threshold.* The k-th largest of all group maxima, by a sorting network over lanes and registers.
   At least k scores reach it, and every score of the top k does.
2. *Candidates.* A bit per score that reaches the threshold, a prefix sum over the lanes, and a list
   in shared memory: about k + 1 or 2 of them on random scores.
3. *Order.* A candidate's place is the number of larger keys. A key packs score and index into 52
   bits, larger first and then smaller index first, and is compared as a double: a positive double
   orders as its bits do, and the FP64 unit is idle here.

A row with more candidates than the list holds (many equal scores), or whose threshold is -inf,
sends its warp down the slow path: k rounds of arg-max over the registers, exact for any input.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.topk_gate.network import EXCHANGE, LOCAL, MAXIMUM, MINIMUM, pow2, threshold

if TYPE_CHECKING:
    import torch

WARP = 32
MAX_SCORES = 64
"""Scores a lane may hold: registers for them, and bits of the candidate mask."""
MAX_EXPERTS = WARP * MAX_SCORES
LAST_INDEX = (1 << 20) - 1
"""Low bits of a key hold ``LAST_INDEX - index``, so that the smaller index is the larger key."""


STRIDE = 8
"""Keys compared at a time; lists are filled up to a multiple."""
PAD = 2
"""Keys between the lists of two tokens, which puts them into different banks."""
COUNT_BITS = 3
"""Candidates a lane may have: fewer than two to this power."""
MAGIC, MAGIC_BITS = 1 << 23, 0x4B000000
"""The float from which on the next one is one more, and its bits."""


@dataclass(frozen=True)
class Plan:
    """How a shape is laid out on a warp.

    Args:
        lanes: lanes that share a token, a power of two.
        groups: groups of scores in a lane.
        width: scores in one load instruction.
        warps: warps in a block.
        capacity: candidates the list of a token holds, a multiple of ``STRIDE`` and of ``lanes``.
    """

    lanes: int
    groups: int
    width: int
    warps: int
    capacity: int
    rehearse: int = 0


def plan(num_experts: int, num_topk: int) -> Plan:
    """The layout for a shape; chosen on an H200 (docs/topk_gate.md)."""
    lanes = min(WARP, max(8 if num_experts <= 128 else 16, pow2(num_topk)))
    if num_experts > lanes * MAX_SCORES:
        lanes = WARP
    # Wide loads where they leave no lane without a score: idle lanes have no maximum to offer.
    fits = (w for w in (4, 2) if num_experts % w == 0 and num_experts >= w * lanes)
    # Two or three group maxima a place bring the threshold close to the k-th score.
    groups = max(2, -(-2 * num_topk // lanes))
    return Plan(lanes, groups, next(fits, 1), warps=4, capacity=max(WARP, 2 * pow2(num_topk)))


def supports(case: Case) -> Support:
    """Every legal shape up to ``MAX_EXPERTS`` experts."""
    experts = int(case.params["num_experts"])
    if experts > MAX_EXPERTS:
        return Support(False, f"{experts} experts; a warp holds at most {MAX_EXPERTS}")
    return Support(True)


def run(scores: "torch.Tensor", num_topk: int, *, out: "torch.Tensor") -> None:
    """Fill ``out`` (num_tokens, num_topk) int64 from ``scores`` (num_tokens, num_experts) float32."""
    num_experts = scores.shape[1]
    kernel(num_experts, num_topk, plan(num_experts, num_topk))(scores, out)


@lru_cache(maxsize=256)
def kernel(num_experts: int, num_topk: int, layout: Plan, arch: str = "") -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    import tilelang

    target = {"kind": "cuda", "arch": arch} if arch else "cuda"
    program = prim_func(num_experts, num_topk, layout)
    return tilelang.compile(program, target=target, pass_configs=pass_configs())


def pass_configs() -> dict[str, bool]:
    """Which of TileLang's passes the program does without."""
    from tilelang import PassConfigKey as Key

    return {
        # Lists are private to a warp, ordered by T.sync_warp; a block barrier in divergent code
        # would hang.
        Key.TL_DISABLE_THREAD_STORAGE_SYNC.value: True,
        Key.TL_DISABLE_WARP_SPECIALIZED.value: True,
        # Rows are clamped below, so loads need no guard of their own.
        Key.TL_DISABLE_SAFE_MEMORY_ACCESS.value: True,
    }


def prim_func(num_experts: int, num_topk: int, layout: Plan) -> Any:
    """The TileLang program: scores float32 (num_tokens, E) -> topk_idx int64 (num_tokens, K)."""
    from tilelang import language as T

    E, K = num_experts, num_topk
    L, W, capacity = layout.lanes, layout.width, layout.capacity
    pitch = capacity + PAD
    span, tokens_per_block = W * L, WARP // L * layout.warps
    chunks = tuple(range(0, E, span))
    V = len(chunks) * W
    size = -(-V // layout.groups)
    groups = tuple(tuple(range(i, min(i + size, V))) for i in range(0, V, size))
    steps = threshold(len(groups), L, K)
    shifts = tuple(1 << i for i in range(L.bit_length() - 1))
    word = "uint32" if V <= 32 else "uint64"
    V_BITS = 32 if V <= 32 else 64
    byte = tuple(range(0, V, 8))
    count_bits = tuple(range(min(COUNT_BITS, V.bit_length())))
    N = T.dynamic("num_tokens")
    inf = T.infinity("float32")
    once = {"pragma_unroll_factor": 1}

    def tree(values):
        """The largest of some values, in as few dependent steps as possible."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2])
            values = [T.max(a, b) for a, b in pairs] + values[len(values) & ~1 :]
        return values[0]

    @T.macro
    def find_threshold(x, r, lane):
        for g, members in enumerate(groups):
            # The last maximum makes a group of NaNs count as -inf.
            r[g] = T.max(tree([x[e] for e in members]), -inf)
        for s in steps:
            g = s.register
            if s.kind == EXCHANGE:
                other = T.shfl_xor(r[g], s.mask)
                larger, smaller = T.max(r[g], other), T.min(r[g], other)
                clear = (lane & s.bit) != 0 if s.flip else (lane & s.bit) == 0
                r[g] = T.if_then_else(clear, larger, smaller)
            elif s.kind == MAXIMUM:
                r[g] = T.max(r[g], T.shfl_xor(r[g], s.mask))
            elif s.kind == MINIMUM:
                r[g] = T.min(r[g], T.shfl_xor(r[g], s.mask))
            elif s.kind == LOCAL:
                r[g] = T.max(r[g], r[s.mask])
            else:
                r[g] = T.shfl_sync(r[g], s.mask, s.bit)

    @T.macro
    def mark(x, t, part, mask):
        # Bits are summed as floats, eight to a sum: adds run beside the compares, on another pipe.
        # From 2**23 on the low bits of a float are an integer, so no conversion is needed.
        mask[0] = T.cast(0, word)
        for i, first in enumerate(byte):
            part[i] = T.float32(0 if i % 2 else MAGIC)
            for e in tuple(range(first, min(first + 8, V))):
                if x[e] >= t:
                    part[i] = part[i] + T.float32(1 << (e - first))
        for i in tuple(range(0, len(byte), 2)):
            if i + 1 < len(byte):
                part[i] = part[i] + part[i + 1] * T.float32(256)
            bits = T.reinterpret(part[i], "uint32") & T.uint32(0xFFFF)
            mask[0] = mask[0] | (T.cast(bits, word) << T.cast(8 * i, word))

    @T.macro
    def collect(keys, words, scores, row, lane, base, at, n, mask):
        while mask[0] != T.cast(0, word):
            e = V_BITS - 1 - T.cast(T.clz(mask[0]), "int32")
            mask[0] = mask[0] ^ (T.cast(1, word) << T.cast(e, word))
            words[2 * at[0]] = e * WARP + lane
            at[0] = at[0] + 1
        T.sync_warp()
        for i in T.unroll(T.ceildiv(n, L), annotations=once):
            key = T.alloc_var("int64", init=T.int64(0))
            if i * L + lane < n:
                code = words[2 * (base + i * L + lane)]
                e = code // WARP
                col = e // W * span + code % WARP * W + e % W
                # Adding 0.0 makes -0.0 equal to 0.0; NaNs are no candidates.
                value = T.ieee_add(scores[row, col], T.float32(0))
                raw = T.reinterpret(value, "uint32")
                flip = T.if_then_else(value < 0, T.uint32(0xFFFFFFFF), T.uint32(0x80000000))
                key = (T.cast(raw ^ flip, "int64") << T.int64(20)) | T.cast(
                    LAST_INDEX - col, "int64"
                )
            # Keys of 0 rank behind every candidate, so lists may be read in eights.
            keys[base + i * L + lane] = key
        T.sync_warp()

    @T.macro
    def order(keys, topk_idx, token, lane, base, n, limit):
        for i in T.unroll(T.ceildiv(n, L), annotations=once):
            if i * L + lane < n:
                mine = keys[base + i * L + lane]
                rank = T.alloc_var("float32", init=T.float32(MAGIC))
                for j in T.unroll(T.ceildiv(n, STRIDE), annotations=once):
                    for q in tuple(range(STRIDE)):
                        other = keys[base + STRIDE * j + q]
                        if T.reinterpret(other, "float64") > T.reinterpret(mine, "float64"):
                            rank = rank + T.float32(1)
                place = T.reinterpret(rank, "int32") - MAGIC_BITS
                if place < K and token < limit[0]:
                    topk_idx[token, place] = T.int64(LAST_INDEX) - (mine & T.int64(LAST_INDEX))

    @T.macro
    def rounds(x, topk_idx, token, lane, limit):
        last = T.alloc_var("float32", init=inf)
        last_col = T.alloc_var("int32", init=-1)
        first = lane * W
        for k in T.serial(K):
            best = T.alloc_var("float32", init=-inf)
            best_col = T.alloc_var("int32", init=E)
            # Columns count from the lane's first, so that those of x are constants.
            past = last_col - first
            for e in tuple(range(V)):
                col = e // W * span + e % W
                value = T.max(x[e], -inf)
                if value < last or (value == last and col > past):
                    if (value > best or best_col == E) and col < E - first:
                        best = value
                        best_col = col
            best_col = best_col + first
            for shift in shifts:
                other = T.shfl_xor(best, shift)
                other_col = T.shfl_xor(best_col, shift)
                if other > best or (other == best and other_col < best_col):
                    best = other
                    best_col = other_col
            if lane == 0 and token < limit[0]:
                topk_idx[token, k] = T.cast(best_col, "int64")
            last = best
            last_col = best_col

    @T.macro
    def work(x, r, part, mask, at, keys, words, scores, topk_idx, row, lane, slot, token, limit):
        find_threshold(x, r, lane)
        mark(x, r[0], part, mask)
        count = T.cast(T.popcount(mask[0]), "int32")
        # Prefix sum over the lanes of a token, one ballot for each bit of the counts.
        first_lane = T.get_thread_binding() % WARP - lane
        before = ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1)) << T.cast(
            first_lane, "uint32"
        )
        at[0] = slot * pitch
        for b in count_bits:
            votes = T.cast(T.ballot((count >> b) & 1), "uint32") & before
            at[0] = at[0] + (T.cast(T.popcount(votes), "int32") << b)
        base = slot * pitch
        n = T.shfl_sync(at[0] + count, L - 1, L) - base
        crowded = n > capacity or count >= 1 << len(count_bits)
        if T.any_sync(r[0] == -inf or crowded) != 0:
            rounds(x, topk_idx, token, lane, limit)
        else:
            collect(keys, words, scores, row, lane, base, at, n, mask)
            order(keys, topk_idx, token, lane, base, n, limit)
        T.sync_warp()

    @T.prim_func
    def topk_gate(
        scores: T.Tensor((N, E), "float32"),
        topk_idx: T.Tensor((N, K), "int64"),
    ):
        with T.Kernel(T.ceildiv(N, tokens_per_block), threads=WARP * layout.warps) as block:
            keys = T.alloc_shared((tokens_per_block * pitch,), "int64")
            words = T.view(keys, (tokens_per_block * pitch * 2,), "int32")
            x = T.alloc_local((V,), "float32")
            r = T.alloc_local((len(groups),), "float32")
            part = T.alloc_local((len(byte),), "float32")
            mask = T.alloc_local((1,), word)
            at = T.alloc_local((1,), "int32")
            limit = T.alloc_local((1,), "int32")
            y = T.alloc_local((V,), "float32")
            lane = T.get_thread_binding() % L
            slot = T.get_thread_binding() // L
            token = block * tokens_per_block + slot
            # Rows beyond the last are read as the last and not written.
            row = T.alloc_var("int32", init=T.min(token, N - 1))
            for c, start in enumerate(chunks):
                if start + span <= E:
                    for v in T.vectorized(W):
                        x[c * W + v] = scores[row, start + lane * W + v]
                else:
                    if start + lane * W < E:
                        for v in T.vectorized(W):
                            x[c * W + v] = scores[row, start + lane * W + v]
                    else:
                        for v in T.vectorized(W):
                            x[c * W + v] = -inf
            if layout.rehearse:
                for e in tuple(range(V)):
                    y[e] = x[e]
                    x[e] = T.cast(lane, "float32") - T.float32(64 * e)
                first_turn = T.alloc_var("int32", init=0)
                if layout.rehearse == 1:
                    first_turn = T.min(T.get_thread_binding() // WARP, 1)
                for turn in T.unroll(2 - first_turn, annotations=once):
                    if turn + first_turn == 1:
                        for e in tuple(range(V)):
                            x[e] = y[e]
                    limit[0] = T.if_then_else(turn + first_turn == 1, N, 0)
                    work(
                        x,
                        r,
                        part,
                        mask,
                        at,
                        keys,
                        words,
                        scores,
                        topk_idx,
                        row,
                        lane,
                        slot,
                        token,
                        limit,
                    )
            else:
                limit[0] = N
                work(
                    x,
                    r,
                    part,
                    mask,
                    at,
                    keys,
                    words,
                    scores,
                    topk_idx,
                    row,
                    lane,
                    slot,
                    token,
                    limit,
                )

    return topk_gate
