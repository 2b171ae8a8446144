"""expand_to_fused on NVIDIA GPUs, in TileLang: a row is read once and leaves for all its places.

*Bulk.* Rows whose size and address are multiples of 16 bytes never pass a register: one thread of a
block starts a bulk copy of a row into shared memory and, when it has come, one bulk copy out for
every place. Several blocks on an SM keep loads and stores in flight together. Rows without an
expert are written from a row of zeros in the same way.

*Plain.* Any other row goes through registers, a thread a word of it.

Scales, a few words a row, are moved by a warp of their own beside either; their result may be
transposed.
"""

from dataclasses import dataclass
from typing import Any

from tilekernels.machine import WARP

BULK = 16
"""Bytes; the grain of bulk copies."""
MAX_PART_BYTES = 64 * 1024
"""Longer rows are moved in parts."""
ZERO_BYTES = 2048
"""Zeros in shared memory; a row of them takes several copies."""
BULK_SOURCE = "#include <tl_templates/cuda/copy_sm90.h>\n"
"""TileLang's own bulk copies; by its copy statements a row would take one for every 1 KiB."""


@dataclass(frozen=True)
class Plan:
    """How rows are moved.

    Args:
        grain: bytes of a word moved at a time by the plain program; 16 for bulk copies.
        bulk: whether rows move by bulk copies.
        stages: rows of a block in shared memory.
        blocks_per_sm: blocks that walk over the tokens; 0: a block a token.
    """

    grain: int
    bulk: bool
    stages: int = 1
    blocks_per_sm: int = 0


@dataclass(frozen=True)
class Scales:
    """Scales of a row: ``words`` of 4 bytes, written transposed where ``transposed``."""

    words: int
    transposed: bool


def prim_func(row_bytes: int, num_topk: int, plan: Plan, scales: Scales | None = None) -> Any:
    """The program: rows (N, row), places (N, K), experts (X,), a number of blocks -> (X, row).

    Rows are int32, int16 or int8 words. With scales: int32 (N, S) -> (X, S), or (S, pitch) where
    transposed.
    """
    from tilelang import language as T

    width = min(plan.grain, 4)
    W, K, dtype = row_bytes // width, num_topk, f"int{8 * width}"
    N, X, pitch = T.dynamic("num_tokens, num_expanded_tokens, pitch")
    threads = WARP if plan.bulk else _plain_threads(row_bytes, plan.grain)
    body = _bulk(W, K, plan) if plan.bulk else _plain(W, K, plan, threads)
    parts = _parts(row_bytes)[0] if plan.bulk else 1
    if scales is None:

        @T.prim_func
        def expand_to_fused(
            x: T.Tensor((N, W), dtype),
            places: T.Tensor((N, K), "int32"),
            experts: T.Tensor((X,), "int32"),
            out: T.Tensor((X, W), dtype),
            blocks: T.int32,
        ):
            with T.Kernel(blocks, parts, threads=threads) as (block, part):
                body(x, places, experts, out, N, X, block, blocks, part)

        return expand_to_fused
    move = _scales(scales, K)
    S = scales.words
    shape = (S, pitch) if scales.transposed else (X, S)

    @T.prim_func
    def expand_to_fused_with_sf(
        x: T.Tensor((N, W), dtype),
        sf: T.Tensor((N, S), "int32"),
        places: T.Tensor((N, K), "int32"),
        experts: T.Tensor((X,), "int32"),
        out: T.Tensor((X, W), dtype),
        out_sf: T.Tensor(shape, "int32"),
        blocks: T.int32,
    ):
        with T.Kernel(blocks, parts, threads=threads + WARP) as (block, part):
            if T.get_thread_binding() < threads:
                body(x, places, experts, out, N, X, block, blocks, part)
            elif part == 0:
                move(sf, places, experts, out_sf, N, X, block, blocks, T.get_thread_binding())

    return expand_to_fused_with_sf


def _parts(row_bytes: int) -> tuple[int, int]:
    """(parts of a row, bytes of each but the last)."""
    count = -(-row_bytes // MAX_PART_BYTES)
    size = -(-row_bytes // (count * BULK)) * BULK
    return -(-row_bytes // size), size


def _plain_threads(row_bytes: int, grain: int) -> int:
    return min(256, -(-row_bytes // (grain * WARP)) * WARP)


def _bulk(W: int, K: int, plan: Plan) -> Any:
    """A macro: the rows of a block's tokens by bulk copies, started by its first thread."""
    from tilelang import language as T

    parts, size = _parts(4 * W)
    S, words = plan.stages, size // 4

    @T.macro
    def load(x, rows, full, token, s, begin, length):
        T.mbarrier_expect_tx(full[s], length)
        T.call_extern(
            "handle", "tl::tma_load",
            T.address_of(rows[s, 0]), T.address_of(x[token, begin]), full[s], length,
        )  # fmt: skip
        T.mbarrier_arrive(full[s])

    @T.macro
    def store(out, place, begin, source, s, length):
        T.call_extern(
            "handle", "tl::tma_store",
            T.address_of(out[place, begin]), T.address_of(source[s, 0]), length,
        )  # fmt: skip

    @T.macro
    def body(x, places, experts, out, N, X, block, blocks, part):
        rows = T.alloc_shared((S, words), "int32")
        zeros = T.alloc_shared((1, ZERO_BYTES // 4), "int32")
        full = T.alloc_barrier([1] * S)
        to = T.alloc_local((K,), "int32")
        T.import_source(BULK_SOURCE)
        lane = T.get_thread_binding() % WARP
        begin = part * words
        # The last part of a row may be shorter.
        length = T.min(size, 4 * W - part * size) if parts > 1 else size
        if lane == 0:
            for s in T.unroll(S):
                if block + s * blocks < N:
                    load(x, rows, full, block + s * blocks, s, begin, length)
        for i in T.unroll(ZERO_BYTES // (4 * WARP)):
            zeros[0, i * WARP + lane] = 0
        T.fence_proxy_async()
        T.sync_warp()
        if lane == 0:
            for i in T.serial(T.ceildiv(T.max(N - block, 0), blocks)):
                token = block + i * blocks
                stage = i % S
                # Places come while the row does.
                for k in T.unroll(K):
                    to[k] = places[token, k]
                T.mbarrier_wait_parity(full[stage], i // S % 2)
                for k in T.unroll(K):
                    if to[k] >= 0 and to[k] < X:
                        store(out, to[k], begin, rows, stage, length)
                T.tma_store_arrive()
                if token + S * blocks < N:
                    # The row may be overwritten when all its copies have read it.
                    T.tma_store_wait(0)
                    load(x, rows, full, token + S * blocks, stage, begin, length)
        # Lanes look for rows without an expert, 32 at a time.
        for i in T.serial(T.ceildiv(T.max(X - block, 0), blocks * WARP)):
            empty = block + (i * WARP + lane) * blocks
            if empty < X:
                if experts[empty] < 0:
                    for c in T.serial(T.ceildiv(length, ZERO_BYTES)):
                        rest = T.min(ZERO_BYTES, length - c * ZERO_BYTES)
                        store(out, empty, begin + c * ZERO_BYTES // 4, zeros, 0, rest)
        T.tma_store_arrive()
        T.tma_store_wait(0)

    return body


def _plain(W: int, K: int, plan: Plan, threads: int) -> Any:
    """A macro: the rows of a block's tokens through registers."""
    from tilelang import language as T

    width = min(plan.grain, 4)
    V, dtype = plan.grain // width, f"int{8 * width}"
    steps = -(-W // (V * threads))

    @T.macro
    def body(x, places, experts, out, N, X, block, blocks, part):
        word = T.alloc_local((V,), dtype)
        tid = T.get_thread_binding()
        for i in T.serial(T.ceildiv(T.max(N - block, 0), blocks)):
            token = block + i * blocks
            for c in T.serial(steps):
                at = (c * threads + tid) * V
                if at < W:
                    for v in T.vectorized(V):
                        word[v] = x[token, at + v]
                    for k in T.serial(K):
                        place = places[token, k]
                        if place >= 0 and place < X:
                            for v in T.vectorized(V):
                                out[place, at + v] = word[v]
        for v in T.unroll(V):
            word[v] = T.cast(0, dtype)
        for i in T.serial(T.ceildiv(T.max(X - block, 0), blocks)):
            empty = block + i * blocks
            if experts[empty] < 0:
                for c in T.serial(steps):
                    at = (c * threads + tid) * V
                    if at < W:
                        for v in T.vectorized(V):
                            out[empty, at + v] = word[v]

    return body


def _scales(scales: Scales, K: int) -> Any:
    """A macro: the scales of a block's tokens, by one warp."""
    from tilelang import language as T

    S, transposed = scales.words, scales.transposed

    @T.macro
    def put(out_sf, place, w, value):
        if transposed:
            out_sf[w, place] = value
        else:
            out_sf[place, w] = value

    @T.macro
    def move(sf, places, experts, out_sf, N, X, block, blocks, tid):
        lane = tid % WARP
        for i in T.serial(T.ceildiv(T.max(N - block, 0), blocks)):
            token = block + i * blocks
            for c in T.serial(T.ceildiv(S, WARP)):
                w = c * WARP + lane
                if w < S:
                    value = sf[token, w]
                    for k in T.unroll(K):
                        place = places[token, k]
                        if place >= 0 and place < X:
                            put(out_sf, place, w, value)
        for i in T.serial(T.ceildiv(T.max(X - block, 0), blocks)):
            empty = block + i * blocks
            if experts[empty] < 0:
                for c in T.serial(T.ceildiv(S, WARP)):
                    if c * WARP + lane < S:
                        put(out_sf, empty, c * WARP + lane, 0)

    return move
