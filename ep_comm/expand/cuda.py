"""expand on NVIDIA GPUs, in TileLang: a block a row, every load of a row in flight at once.

Rows move as 16-byte vectors of int32 words, whatever their dtype. A gap loads nothing.

Few rows cost latency, not bytes: a row cannot be asked for before its index has come. So block i
calls row i into L2 while it waits for its own index. Every row is wanted by somebody, and what
memory takes to answer is waited for once instead of twice. Many rows would be gone from L2 before
their turn, so they are left alone.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

VECTOR = 4
"""int32 words in one load."""
WARP, THREADS, MAX_THREADS = 32, 128, 512
"""A block has whole multiples of the second, a warp for each of the four schedulers, unless a row
is narrower."""
VECTORS, MAX_VECTORS = 4, 8
"""Vectors a thread holds at a time, and the most; longer rows go in several passes."""
LINE = 32
"""int32 words of a cache line, which one prefetch fetches."""
AHEAD_BYTES = 2 << 20
"""Rows of this many bytes together are called into L2 beforehand: it wins a tenth of the time at
0.9 and 1.8 MB, and loses as much at 7 MB, where other blocks of an SM fill the wait."""
SOURCE = """
namespace ak {
__device__ __forceinline__ void prefetch_l2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}
}
"""


def supports(case: Case) -> Support:
    """Every legal row."""
    return Support(True)


def run(rows: "torch.Tensor", index: "torch.Tensor", *, out: "torch.Tensor") -> None:
    """Fill ``out`` (num_out, hidden) with rows of (num_rows, hidden)."""
    import torch

    words = rows.shape[1] * rows.element_size() // 4
    if not len(rows):
        out.zero_()
        return
    kernel(words)(rows.view(torch.int32), index, out.view(torch.int32))


@lru_cache(maxsize=256)
def kernel(words: int, arch: str = "") -> Any:
    """The compiled kernel of a row width; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    import tilelang

    return tilelang.compile(
        prim_func(words),
        target={"kind": "cuda", "arch": arch} if arch else "cuda",
        pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    )


def plan(words: int) -> tuple[int, int, int]:
    """(threads, vectors a thread holds, passes) for a row."""
    vectors = words // VECTOR
    most = min(MAX_THREADS, -(-vectors // (VECTORS * THREADS)) * THREADS)
    threads = min(most, -(-vectors // WARP) * WARP)
    held = min(MAX_VECTORS, -(-vectors // threads))
    return threads, held, -(-vectors // (threads * held))


def prim_func(words: int) -> Any:
    """The TileLang program: int32 (num_rows, W), index (num_out,) -> int32 (num_out, W)."""
    from tilelang import language as T

    W, vectors = words, words // VECTOR
    threads, held, passes = plan(words)
    lines = -(-words // LINE)
    R, N = T.dynamic("num_rows, num_out")

    @T.prim_func
    def expand(
        rows: T.Tensor((R, W), "int32"),
        index: T.Tensor((N,), "int32"),
        out: T.Tensor((N, W), "int32"),
    ):
        with T.Kernel(N, threads=threads) as i:
            T.import_source(SOURCE)
            tid = T.get_thread_binding()
            words_held = T.alloc_local((held, VECTOR), "int32")
            # Fewer outputs than rows would not want all of them.
            if i < R and R <= N and R <= AHEAD_BYTES // (4 * W):
                for c in T.unroll(-(-lines // threads)):
                    if c * threads + tid < lines:
                        T.call_extern(
                            "handle",
                            "ak::prefetch_l2",
                            T.address_of(rows[i, (c * threads + tid) * LINE]),
                        )
            source = index[i]
            for p in T.unroll(passes):
                for c in T.unroll(held):
                    at = (p * held + c) * threads + tid
                    for v in T.vectorized(VECTOR):
                        words_held[c, v] = 0
                    if at < vectors and source >= 0:
                        for v in T.vectorized(VECTOR):
                            words_held[c, v] = rows[source, at * VECTOR + v]
                for c in T.unroll(held):
                    at = (p * held + c) * threads + tid
                    if at < vectors:
                        for v in T.vectorized(VECTOR):
                            out[i, at * VECTOR + v] = words_held[c, v]

    return expand
