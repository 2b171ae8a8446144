"""expand_to_fused on NVIDIA GPUs, in TileLang: a row is read once and leaves for all its places.

A block has a token. Its places and its whole row come into registers by loads that do not wait for
each other; then the row is written once a place. Every block also looks at a position of the
result, or some, and writes zeros where one has no expert. Scales, a few words a row, go the same
way; their result may be transposed.

Reads that trickle in between many writes cost the memory more than their bytes (docs/gate.md). So
rows that come soon are fetched into L2 beforehand, many at a time, where that was found to help:
rows that are long only where few blocks run beside each other.
"""

from dataclasses import dataclass
from typing import Any

WIDE = 16
"""Bytes of the widest access."""
MAX_HELD = 8
"""Accesses of a thread in flight: registers for a row."""
FETCHED = 8
"""Rows that a block fetches for later ones."""

# What TileLang 0.1.15 has no words for: accesses to what nobody needs again, a fetch into L2.
SOURCE = r"""
__device__ __forceinline__ void ak_take(void* to, const void* from) {
  int4 v;
  asm volatile(
      "{\n\t.reg .b64 once;\n\tcreatepolicy.fractional.L2::evict_first.b64 once, 1.0;\n\t"
      "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.s32 {%0, %1, %2, %3}, [%4], once;\n\t}"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  *(int4*)to = v;
}
__device__ __forceinline__ void ak_put(void* to, const void* from) {
  __stcs((int4*)to, *(const int4*)from);
}
__device__ __forceinline__ void ak_fetch(const void* from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void ak_keep(const void*) {
  // Nothing: a named use, so that the room is asked for.
}
"""


@dataclass(frozen=True)
class Plan:
    """How rows are moved.

    Args:
        grain: bytes of an access.
        threads: threads of a block.
        streaming: whether accesses tell that nobody needs the bytes again; needs a grain of 16.
        ahead: tokens whose rows are fetched into L2 together; 0 for none; needs a grain of 16.
        positions: positions of the result that a block looks at.
        room: bytes of shared memory that a block takes and leaves alone, which limits how many
            blocks an SM runs at a time; 0 for no limit.
    """

    grain: int
    threads: int
    streaming: bool
    ahead: int
    positions: int
    room: int = 0


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
    body = _body(W, K, plan, scales)
    if scales is None:

        @T.prim_func
        def expand_to_fused(
            x: T.Tensor((N, W), dtype),
            places: T.Tensor((N, K), "int32"),
            experts: T.Tensor((X,), "int32"),
            out: T.Tensor((X, W), dtype),
            blocks: T.int32,
        ):
            with T.Kernel(blocks, threads=plan.threads) as block:
                body(x, places, experts, out, None, None, N, X, block)

        return expand_to_fused
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
        with T.Kernel(blocks, threads=plan.threads) as block:
            body(x, places, experts, out, sf, out_sf, N, X, block)

    return expand_to_fused_with_sf


def _body(W: int, K: int, plan: Plan, scales: Scales | None) -> Any:
    """A macro: what a block does."""
    from tilelang import language as T

    width, threads, P = min(plan.grain, 4), plan.threads, plan.positions
    V, dtype = plan.grain // width, f"int{8 * width}"
    held = min(MAX_HELD, -(-W // (V * threads)))
    steps = -(-W // (V * threads * held))
    S, transposed = (scales.words, scales.transposed) if scales else (0, False)
    sf_steps = -(-S // threads)

    @T.macro
    def take(words, i, x, row, at):
        if plan.streaming:
            T.call_extern("handle", "ak_take", T.address_of(words[i, 0]), T.address_of(x[row, at]))
        else:
            for v in T.vectorized(V):
                words[i, v] = x[row, at + v]

    @T.macro
    def put(out, row, at, words, i):
        if plan.streaming:
            T.call_extern("handle", "ak_put", T.address_of(out[row, at]), T.address_of(words[i, 0]))
        else:
            for v in T.vectorized(V):
                out[row, at + v] = words[i, v]

    @T.macro
    def write(out, row, step, words, tid):
        for i in T.unroll(held):
            at = ((step * held + i) * threads + tid) * V
            if at < W:
                put(out, row, at, words, i)

    @T.macro
    def write_sf(out_sf, row, step, value, tid):
        if step * threads + tid < S:
            if transposed:
                out_sf[step * threads + tid, row] = value
            else:
                out_sf[row, step * threads + tid] = value

    @T.macro
    def body(x, places, experts, out, sf, out_sf, N, X, block):
        T.import_source(SOURCE)
        words = T.alloc_local((held, V), dtype)
        to = T.alloc_local((K,), "int32")
        expert = T.alloc_local((P,), "int32")
        tid = T.get_thread_binding()
        if plan.room:
            room = T.alloc_shared((plan.room,), "uint8")
            T.call_extern("handle", "ak_keep", T.address_of(room[0]))
        if plan.ahead:
            # The first blocks of every group of tokens fetch the rows of the next group.
            mine = block % plan.ahead * FETCHED
            if mine < plan.ahead and tid < FETCHED:
                soon = (block // plan.ahead + 1) * plan.ahead + mine + tid
                if soon < N:
                    T.call_extern("handle", "ak_fetch", T.address_of(x[soon, 0]), W * width)
        for p in T.unroll(P):
            expert[p] = 0
            if block * P + p < X:
                expert[p] = experts[block * P + p]
        if block < N:
            for k in T.unroll(K):
                to[k] = places[block, k]
            for step in T.serial(steps):
                for i in T.unroll(held):
                    at = ((step * held + i) * threads + tid) * V
                    if at < W:
                        take(words, i, x, block, at)
                for k in T.unroll(K):
                    if to[k] >= 0 and to[k] < X:
                        write(out, to[k], step, words, tid)
            if S > 0:
                for step in T.serial(sf_steps):
                    if step * threads + tid < S:
                        value = sf[block, step * threads + tid]
                        for k in T.unroll(K):
                            if to[k] >= 0 and to[k] < X:
                                write_sf(out_sf, to[k], step, value, tid)
        for i in T.unroll(held):
            for v in T.vectorized(V):
                words[i, v] = T.cast(0, dtype)
        for p in T.unroll(P):
            if expert[p] < 0:
                for step in T.serial(steps):
                    write(out, block * P + p, step, words, tid)
                if S > 0:
                    for step in T.serial(sf_steps):
                        write_sf(out_sf, block * P + p, step, 0, tid)

    return body
