"""topk_sum_and_topk_group_idx on NVIDIA GPUs, in TileLang: a lane a group, rows by way of shared
memory.

A block copies the scores of its tokens, which are one piece of memory, with wide loads. Then lane g
of a token walks over group g, keeps the two best, and counts the groups before its own. Lanes start
at different members, so that they meet in no bank. Groups too large for that are read where they
are.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.machine import WARP, compile_cuda, grain

if TYPE_CHECKING:
    import torch

THREADS = 128
MAX_SHARED = 48 * 1024
UNROLL = 4
"""Loads in flight a thread."""


@dataclass(frozen=True)
class Form:
    """What a program is built for; ``width`` is scores in one load."""

    num_groups: int
    per_group: int
    num_topk_sum: int
    num_topk_groups: int
    width: int


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    scores: "torch.Tensor", num_topk_sum: int, num_topk_groups: int, *, out: "torch.Tensor"
) -> None:
    """Fill ``out`` int64 (num_tokens, num_topk_groups)."""
    _, groups, per_group = scores.shape
    form = Form(groups, per_group, num_topk_sum, num_topk_groups, grain(scores.nbytes, scores) // 4)
    kernel(form)(scores.view(-1), out)


@lru_cache(maxsize=256)
def kernel(form: Form, arch: str = "") -> Any:
    """The compiled kernel of a form; ``arch`` compiles where no GPU is."""
    return compile_cuda(prim_func(form), arch)


def tokens_per_block(num_groups: int) -> int:
    """A token has a power of two of lanes."""
    return THREADS >> (num_groups - 1).bit_length()


def prim_func(form: Form) -> Any:
    """The TileLang program: scores (num_tokens * G * P,) -> group indices (num_tokens, keep)."""
    from tilelang import language as T

    G, P, W, keep = form.num_groups, form.per_group, form.width, form.num_topk_groups
    lanes, tokens = 1 << (G - 1).bit_length(), tokens_per_block(G)
    size = tokens * G * P
    staged = 4 * size <= MAX_SHARED
    n, N = T.dynamic("num_scores, num_tokens")
    inf = T.infinity("float32")

    @T.macro
    def stage(scores, room, block, tid):
        held = T.alloc_local((UNROLL, W), "float32")
        for step in T.serial(-(-size // (UNROLL * W * THREADS))):
            for u in T.unroll(UNROLL):
                at = ((step * UNROLL + u) * THREADS + tid) * W
                if at < size and block * size + at < n:
                    for v in T.vectorized(W):
                        held[u, v] = scores[T.cast(block, "int64") * size + at + v]
            for u in T.unroll(UNROLL):
                to = ((step * UNROLL + u) * THREADS + tid) * W
                if to < size:
                    for v in T.vectorized(W):
                        room[to + v] = held[u, v]

    @T.prim_func
    def topk_sum_and_topk_group_idx(
        scores: T.Tensor((n,), "float32"),
        out: T.Tensor((N, keep), "int64"),
    ):
        with T.Kernel(T.ceildiv(N, tokens), threads=THREADS) as block:
            tid = T.get_thread_binding()
            lane, slot = tid % lanes, tid // lanes
            token = block * tokens + slot
            best = T.alloc_var("float32", init=-inf)
            second = T.alloc_var("float32", init=-inf)
            larger = T.alloc_var("int32", init=0)
            at = T.alloc_var("int32", init=tid % WARP % P)
            room = T.alloc_shared((size if staged else 1,), "float32")
            if staged:
                stage(scores, room, block, tid)
                T.sync_threads()
            if lane < G and token < N:
                for _ in T.serial(P):
                    value = T.alloc_var("float32")
                    # The maximum with -inf makes a NaN count as -inf.
                    if staged:
                        value = T.max(room[(slot * G + lane) * P + at], -inf)
                    else:
                        value = T.max(scores[(T.cast(token, "int64") * G + lane) * P + at], -inf)
                    if form.num_topk_sum == 2:
                        second = T.max(second, T.min(best, value))
                    best = T.max(best, value)
                    at = T.if_then_else(at + 1 == P, 0, at + 1)
                if form.num_topk_sum == 2:
                    best = T.max(T.ieee_add(best, second), -inf)
            for g in T.unroll(G):
                other = T.alloc_var("float32")
                other = T.shfl_sync(best, g, lanes)
                if other > best or (other == best and g < lane):
                    larger = larger + 1
            if lane < G and token < N and larger < keep:
                out[token, larger] = T.cast(lane, "int64")

    return topk_sum_and_topk_group_idx
