"""The k best of a row on NVIDIA GPUs, in TileLang: a threshold, then a sort of what passes it.

``lanes`` lanes of a warp share a token; each holds its scores in registers, split into ``groups``.

1. *Threshold.* Every group offers its largest score. The place of each among all of them is the
   number of larger ones, read from shared memory; the one at place k - 1 is the threshold. At least
   k scores reach it, and every score of the top k does.
2. *Candidates.* Scores that reach the threshold, listed in shared memory: one of each group at
   places 0 to k - 1, then what is left, lane by lane. On random scores there are few more than k.
3. *Order.* The place of a candidate is again the number of larger ones. A key packs score and index
   into 52 bits, larger first and then smaller index first, and is compared as a double: a positive
   double orders as its bits do, and the FP64 unit is idle here.

A row with more candidates than the list holds (many equal scores), or whose threshold is -inf,
sends its warp down the slow path: k rounds of arg-max over the registers, exact for any input.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilekernels.machine import WARP

MAX_SCORES = 64
"""Scores a lane may hold: registers for them, and bits of the candidate mask."""
LAST_INDEX = (1 << 20) - 1
"""Low bits of a key hold ``LAST_INDEX - index``, so that the smaller index is the larger key."""
STRIDE = 16
"""Keys compared at a time; lists are filled up to a multiple."""
PAD = 2
"""Between the lists of two tokens: room for the threshold, and other banks for other tokens."""
LEAST_FINITE = -0x7F800000
"""Bits of the least finite float, as an integer in order."""
MAGIC, MAGIC_BITS = 1 << 23, 0x4B000000
"""The float from which on the next one is one more, and its bits."""
PASSES = {
    # Lists are private to a warp, ordered by T.sync_warp; a block barrier in divergent code would
    # hang.
    "TL_DISABLE_THREAD_STORAGE_SYNC": True,
    # Warps of a block are at different places: what one has done with, another still needs.
    "TL_DISABLE_SHARED_MEMORY_REUSE": True,
    # Rows are clamped, so loads need no guard of their own.
    "TL_DISABLE_SAFE_MEMORY_ACCESS": True,
}
"""Passes of TileLang that a kernel with a selection does without."""


@dataclass(frozen=True)
class Plan:
    """How a shape is laid out on a warp.

    Args:
        lanes: lanes that share a token, a power of two.
        groups: groups of scores in a lane.
        width: scores in one load instruction.
        warps: warps in a block.
        capacity: candidates the list of a token holds, at least.
        chained: start while the kernel before drains (programmatic dependent launch). The kernel
            touches memory only after that one is done.
    """

    lanes: int
    groups: int
    width: int
    warps: int
    capacity: int
    chained: bool = False


def pow2(n: int) -> int:
    """Smallest power of two that is at least ``n``."""
    return 1 << (n - 1).bit_length()


def selection(num_experts: int, num_topk: int, layout: Plan) -> Any:
    """Geometry and macros of a shape, for the body of a kernel with ``threads`` threads.

    Score ``c * W + v`` of a lane is column ``chunks[c] + lane * W + v``.

    Macros: ``load(x, lane, read)`` fills a lane's scores by ``read(x, first, column)``, W at once,
    -inf beyond the row; ``each(lane, work)`` calls ``work(first, column)`` for those in the row;
    ``select(x, keys, slot, lane, value_at, emit)`` calls ``emit(place, column)`` for the K best,
    each in one lane, where ``value_at(column)`` gives a score of the token again.
    """
    from tilelang import language as T

    E, K = num_experts, num_topk
    L, W = layout.lanes, layout.width
    span, tokens_per_block = W * L, WARP // L * layout.warps
    chunks = tuple(range(0, E, span))
    V = len(chunks) * W
    size = -(-V // layout.groups)
    groups = tuple(tuple(range(i, min(i + size, V))) for i in range(0, V, size))
    G = len(groups)
    word = "uint32" if V <= 32 else "uint64"
    byte = tuple(range(0, V, 8))
    shifts = tuple(1 << i for i in range(L.bit_length() - 1))
    # Two lists a token: maxima (32 bits, counted here in 64-bit words), then candidates.
    ways = -(-L * G // STRIDE) * STRIDE
    low_bits, block_keys = pow2(L * G) - 1, max(L, STRIDE)
    room = -(-layout.capacity // block_keys) * block_keys
    pitch = ways // 2 + room + PAD
    inf = T.infinity("float32")

    def tree(values):
        """The largest of some values, in as few dependent steps as possible."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2])
            values = [T.max(a, b) for a, b in pairs] + values[len(values) & ~1 :]
        return values[0]

    def in_order(bits):
        """Bits of a float as an integer of the same order; its own inverse."""
        return bits ^ ((bits >> 31) & 0x7FFFFFFF)

    def bits_of(members):
        """A mask of scores, put together from halves: constants are signed 64-bit integers."""
        bits = sum(1 << e for e in members)
        low, high = T.cast(bits & 0xFFFFFFFF, word), T.cast(bits >> 32, word)
        return low | (high << T.cast(32, word)) if V > 32 else low

    def whole(n):
        """Keys that are read and must be filled for a list of n."""
        return T.ceildiv(n, block_keys) * block_keys

    def double(key):
        return T.reinterpret(key, "float64")

    @T.macro
    def load(x, lane, read):
        for c, start in enumerate(chunks):
            if start + span <= E:
                read(x, c * W, start + lane * W)
            else:
                if start + lane * W < E:
                    read(x, c * W, start + lane * W)
                else:
                    for v in T.vectorized(W):
                        x[c * W + v] = -inf

    @T.macro
    def each(lane, work):
        for c, start in enumerate(chunks):
            if start + span <= E:
                work(c * W, start + lane * W)
            else:
                if start + lane * W < E:
                    work(c * W, start + lane * W)

    @T.macro
    def count_larger(listed, read, start, n, own, rank):
        # Two sums, so that an add does not wait for the one before it.
        rank[0] = T.float32(MAGIC)
        rank[1] = T.float32(0)
        for j in T.unroll(T.ceildiv(n, STRIDE), annotations={"pragma_unroll_factor": 1}):
            for q in tuple(range(STRIDE)):
                if read(listed[start + STRIDE * j + q]) > own:
                    rank[q % 2] = rank[q % 2] + T.float32(1)
        rank[0] = rank[0] + rank[1]

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
    def list_one(words, at, lane, mask, among):
        e = T.__ffs(mask[0] & among) - 1
        mask[0] = mask[0] & ~(T.cast(1, word) << T.cast(e, word))
        words[2 * at] = e * WARP + lane

    @T.macro
    def rounds(x, lane, emit):
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
                after = value < last or (value == last and col > past)
                if after and col < E - first and (value > best or best_col == E):
                    best = value
                    best_col = col
            best_col = best_col + first
            for shift in shifts:
                other = T.shfl_xor(best, shift)
                other_col = T.shfl_xor(best_col, shift)
                if other > best or (other == best and other_col < best_col):
                    best = other
                    best_col = other_col
            if lane == 0:
                emit(k, best_col)
            last = best
            last_col = best_col

    @T.macro
    def select(x, keys, slot, lane, value_at, emit):
        words = T.view(keys, (tokens_per_block * pitch * 2,), "int32")
        tops = T.alloc_local((G,), "int32")
        places = T.alloc_local((G,), "int32")
        rank = T.alloc_local((2,), "float32")
        part = T.alloc_local((len(byte),), "float32")
        mask = T.alloc_local((1,), word)
        extra = T.alloc_local((1,), "int32")
        votes = T.alloc_local((1,), "uint32")

        # 1. The place of every group maximum; that of place K - 1 gives the threshold. The group's
        # number in the low bits makes all of them different.
        base = slot * pitch
        for g, members in enumerate(groups):
            # The last maximum makes a group of NaNs count as -inf.
            top = T.max(tree([x[e] for e in members]), -inf)
            tops[g] = (in_order(T.reinterpret(top, "int32")) & ~low_bits) | (g * L + lane)
            words[2 * base + g * L + lane] = tops[g]
        for i in tuple(range(L * G, ways, L)):
            if i + lane < ways:
                words[2 * base + i + lane] = -(1 << 31)
        T.sync_warp()
        for g in tuple(range(G)):
            count_larger(words, lambda k: k, 2 * base, L * G, tops[g], rank)
            places[g] = T.reinterpret(rank[0], "int32") - MAGIC_BITS
            if places[g] == K - 1:
                words[2 * (base + pitch) - 1] = tops[g]
        T.sync_warp()
        floor = words[2 * (base + pitch) - 1] & ~low_bits
        t = T.reinterpret(in_order(floor), "float32")

        # 2. Candidates: one of each group among the top K, then the rest, in any order.
        mark(x, t, part, mask)
        start = base + ways // 2
        for g, members in enumerate(groups):
            if places[g] < K:
                list_one(words, start + places[g], lane, mask, bits_of(members))
        first_lane = T.get_thread_binding() % WARP - lane
        mine = T.uint32((1 << L) - 1) << T.cast(first_lane, "uint32")
        below = ((T.uint32(1) << T.cast(lane, "uint32")) - T.uint32(1)) << T.cast(
            first_lane, "uint32"
        )
        extra[0] = 0
        votes[0] = T.cast(T.ballot(mask[0] != T.cast(0, word)), "uint32")
        while votes[0] != T.uint32(0):
            if mask[0] != T.cast(0, word) and extra[0] <= room - K - L:
                at = start + K + extra[0] + T.cast(T.popcount(votes[0] & below), "int32")
                list_one(words, at, lane, mask, bits_of(range(V)))
            extra[0] = extra[0] + T.cast(T.popcount(votes[0] & mine), "int32")
            votes[0] = T.cast(
                T.ballot(mask[0] != T.cast(0, word) and extra[0] <= room - K - L), "uint32"
            )
        if T.any_sync(floor < LEAST_FINITE or mask[0] != T.cast(0, word)) != 0:
            rounds(x, lane, emit)
        else:
            # 3. The place of a candidate is the number of larger keys.
            n = K + extra[0]
            T.sync_warp()
            for i in T.unroll(whole(n) // L, annotations={"pragma_unroll_factor": 1}):
                key = T.alloc_var("int64", init=T.int64(0))
                if i * L + lane < n:
                    code = words[2 * (start + i * L + lane)]
                    e = code // WARP
                    col = e // W * span + code % WARP * W + e % W
                    # Adding 0.0 makes -0.0 equal to 0.0; NaNs are no candidates.
                    value = T.ieee_add(value_at(col), T.float32(0))
                    bits = in_order(T.reinterpret(value, "int32"))
                    unsigned = T.cast(T.reinterpret(bits, "uint32") ^ T.uint32(1 << 31), "int64")
                    key = (unsigned << T.int64(20)) | T.cast(LAST_INDEX - col, "int64")
                keys[start + i * L + lane] = key
            T.sync_warp()
            for i in T.unroll(T.ceildiv(n, L), annotations={"pragma_unroll_factor": 1}):
                if i * L + lane < n:
                    own = keys[start + i * L + lane]
                    count_larger(keys, double, start, n, double(own), rank)
                    place = T.reinterpret(rank[0], "int32") - MAGIC_BITS
                    if place < K:
                        emit(place, LAST_INDEX - T.cast(own & T.int64(LAST_INDEX), "int32"))

    return SimpleNamespace(
        E=E, K=K, L=L, W=W, V=V, span=span, chunks=chunks, shifts=shifts,
        tokens=tokens_per_block, threads=WARP * layout.warps, scratch=tokens_per_block * pitch,
        load=load, each=each, select=select, tree=tree,
    )  # fmt: skip
