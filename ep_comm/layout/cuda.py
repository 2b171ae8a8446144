"""layout on NVIDIA GPUs, in TileLang: a block a rank, one walk over all tokens, one launch.

Every block reads all choices (they stay in L2) and looks for its own rank. Tokens are numbered by a
ballot in the warp and a sum over warps, so slots do not depend on timing. Every entry of the output
is written by one block: the owner of the choice, block 0 for -1.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

WARP = 32
THREADS = 512
FULL = 0xFFFFFFFF


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(topk_idx: "torch.Tensor", num_experts: int, num_ranks: int, *, out: "torch.Tensor") -> None:
    """Fill ``out`` int32 (N + E + t * k,)."""
    if not len(topk_idx):
        out.zero_()
        return
    kernel(topk_idx.shape[1], num_experts, num_ranks)(topk_idx, out)


@lru_cache(maxsize=256)
def kernel(num_topk: int, num_experts: int, num_ranks: int, arch: str = "") -> Any:
    """The compiled kernel of a shape; ``arch`` such as ``sm_90a`` compiles where no GPU is."""
    import tilelang

    return tilelang.compile(
        prim_func(num_topk, num_experts, num_ranks),
        target={"kind": "cuda", "arch": arch} if arch else "cuda",
        pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
    )


def prim_func(num_topk: int, num_experts: int, num_ranks: int) -> Any:
    """The TileLang program: int64 (num_tokens, K) -> int32 (N + E + num_tokens * K,)."""
    from tilelang import language as T

    K, E, N = num_topk, num_experts, num_ranks
    share, warps, head = E // N, THREADS // WARP, N + E
    tokens = T.dynamic("num_tokens")

    @T.prim_func
    def layout(
        topk_idx: T.Tensor((tokens, K), "int64"),
        out: T.Tensor((head + tokens * K,), "int32"),
    ):
        with T.Kernel(N, threads=THREADS) as rank:
            tid = T.get_thread_binding()
            counts = T.alloc_shared((share,), "int32")
            # Two sets, so that a tile may write while a slow warp still reads the last one.
            totals = T.alloc_shared((2, warps), "int32")
            mine = T.alloc_local((K,), "int32")
            state = T.alloc_local((4,), "int32")
            ballot = T.alloc_local((1,), "uint32")
            for c in T.serial(T.ceildiv(share, THREADS)):
                if c * THREADS + tid < share:
                    counts[c * THREADS + tid] = 0
            T.sync_threads()
            state[0] = 0
            for tile in T.serial(T.ceildiv(tokens, THREADS)):
                token = tile * THREADS + tid
                state[1] = -1
                for j in T.unroll(K):
                    # -2: another rank's; -1: nobody's; else an expert of this rank.
                    mine[j] = -2
                    if token < tokens:
                        expert = T.cast(topk_idx[token, j], "int32")
                        if expert < 0:
                            mine[j] = -1
                        elif expert >= rank * share and expert < rank * share + share:
                            mine[j] = expert - rank * share
                            state[1] = j
                            T.atomic_add(counts[mine[j]], 1)
                ballot[0] = T.call_extern(
                    "uint32", "__ballot_sync", T.uint32(FULL), T.cast(state[1] >= 0, "int32")
                )
                if tid % WARP == 0:
                    totals[tile % 2, tid // WARP] = T.call_extern("int32", "__popc", ballot[0])
                T.sync_threads()
                state[2] = state[0]
                for w in T.unroll(warps):
                    if w < tid // WARP:
                        state[2] = state[2] + totals[tile % 2, w]
                    state[0] = state[0] + totals[tile % 2, w]
                below = (T.uint32(1) << T.cast(tid % WARP, "uint32")) - T.uint32(1)
                state[2] = state[2] + T.call_extern("int32", "__popc", ballot[0] & below)
                for j in T.unroll(K):
                    if mine[j] >= 0:
                        out[head + token * K + j] = T.if_then_else(j == state[1], state[2], -1)
                    elif mine[j] == -1 and rank == 0:
                        out[head + token * K + j] = -1
            T.sync_threads()
            if tid == 0:
                out[rank] = state[0]
            for c in T.serial(T.ceildiv(share, THREADS)):
                if c * THREADS + tid < share:
                    out[N + rank * share + c * THREADS + tid] = counts[c * THREADS + tid]

    return layout
