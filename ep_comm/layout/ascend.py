"""layout on the Ascend 950, in TileLang: two passes over the choices, a SIMT thread a rank.

Every vector core owns a run of consecutive tokens. The first pass counts, for every rank and every
expert, the tokens of the run that go there. Sums over earlier runs (a small torch operation between
the passes) tell every run where its numbers begin. In the second pass the thread of a rank walks
over the run and hands out numbers in order, so slots do not depend on timing. Its threads write
different entries, since a choice has one rank; the compiler cannot see that and warns.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support

if TYPE_CHECKING:
    import torch

TILE = 64
"""Tokens in the Unified Buffer at a time."""
MAX_THREADS = 1024
PAD = 8
"""int32 words of 32 bytes, the grain of copies."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(topk_idx: "torch.Tensor", num_experts: int, num_ranks: int, *, out: "torch.Tensor") -> None:
    """Fill ``out`` int32 (N + E + t * k,)."""
    import torch

    tokens, topk = topk_idx.shape
    parts, cores = num_ranks + num_experts, _vector_cores(out)
    if not tokens:
        out.zero_()
        return
    counted = torch.empty((cores, padded(parts)), dtype=torch.int32, device=out.device)
    words = topk_idx.view(torch.int32)
    count(topk, num_experts, num_ranks, cores)(words, counted)
    out[:parts] = counted[:, :parts].sum(0)
    begins = torch.zeros((cores, padded(num_ranks)), dtype=torch.int32, device=out.device)
    begins[1:, :num_ranks] = counted[:-1, :num_ranks].cumsum(0)
    slots(topk, num_experts, num_ranks, cores)(words, begins, out[parts:].view(tokens, topk))


@lru_cache(maxsize=256)
def count(num_topk: int, num_experts: int, num_ranks: int, num_cores: int) -> Any:
    """The first pass, compiled."""
    import tilelang

    return tilelang.compile(
        count_program(num_topk, num_experts, num_ranks, num_cores), target="ascend"
    )


@lru_cache(maxsize=256)
def slots(num_topk: int, num_experts: int, num_ranks: int, num_cores: int) -> Any:
    """The second pass, compiled."""
    import tilelang

    return tilelang.compile(
        slots_program(num_topk, num_experts, num_ranks, num_cores), target="ascend"
    )


def padded(words: int) -> int:
    """int32 words rounded up to 32 bytes."""
    return -(-words // PAD) * PAD


def _vector_cores(out: "torch.Tensor") -> int:
    if out.device.type == "cpu":
        from ascendkit.emulator.kernel import CORES

        return 2 * CORES
    import torch

    return 2 * int(torch.npu.get_device_properties(out.device).cube_core_num)


def _threads(work: int) -> int:
    return min(MAX_THREADS, -(-work // 32) * 32)


def count_program(num_topk: int, num_experts: int, num_ranks: int, num_cores: int) -> Any:
    """int64 choices as words (num_tokens, 2 K) -> int32 (cores, N + E): tokens of each run."""
    from tilelang.ascend import language as T

    K, E, N = num_topk, num_experts, num_ranks
    share, parts = E // N, N + E
    pitch, threads = padded(2 * K), _threads(parts)
    tokens = T.dynamic("num_tokens")

    @T.prim_func
    def layout_count(
        words: T.Tensor((tokens, 2 * K), "int32"),
        counted: T.Tensor((num_cores, padded(parts)), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((TILE, pitch), "int32")
            count_ub = T.alloc_shared((padded(parts),), "int32")
            T.annotate_buffer_versions({words_ub: 1, count_ub: 1})
            run_of = T.ceildiv(tokens, num_cores)
            first = core * run_of
            mine = T.max(0, T.min(run_of, tokens - first))
            with T.SimtVF(threads=threads):
                for p in T.Parallel(padded(parts)):
                    count_ub[p] = 0
            for tile in T.serial(T.ceildiv(mine, TILE)):
                row = first + tile * TILE
                valid = T.min(TILE, first + mine - row)
                T.copy(words[row : row + valid, :], words_ub[:valid, : 2 * K])
                with T.SimtVF(threads=threads):
                    for p in T.Parallel(parts):
                        found = T.alloc_var("int32")
                        total = T.alloc_var("int32")
                        low = T.alloc_var("int32")
                        high = T.alloc_var("int32")
                        low = T.if_then_else(p < N, p * share, p - N)
                        high = T.if_then_else(p < N, p * share + share, p - N + 1)
                        total = count_ub[p]
                        for t in T.serial(valid):
                            found = 0
                            for j in T.unroll(K):
                                if words_ub[t, 2 * j] >= low and words_ub[t, 2 * j] < high:
                                    found = 1
                            total = total + found
                        count_ub[p] = total
            T.copy(count_ub, counted[core, :])

    return layout_count


def slots_program(num_topk: int, num_experts: int, num_ranks: int, num_cores: int) -> Any:
    """int64 choices as words (num_tokens, 2 K), numbers (cores, N) -> slots (num_tokens, K)."""
    from tilelang.ascend import language as T

    K, E, N = num_topk, num_experts, num_ranks
    share = E // N
    pitch, threads = padded(2 * K), _threads(max(N, 256))
    out_pitch = padded(K)
    tokens = T.dynamic("num_tokens")

    @T.prim_func
    def layout_slots(
        words: T.Tensor((tokens, 2 * K), "int32"),
        begins: T.Tensor((num_cores, padded(N)), "int32"),
        slot: T.Tensor((tokens, K), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((TILE, pitch), "int32")
            next_ub = T.alloc_shared((padded(N),), "int32")
            slot_ub = T.alloc_shared((TILE, out_pitch), "int32")
            T.annotate_buffer_versions({words_ub: 1, next_ub: 1, slot_ub: 1})
            run_of = T.ceildiv(tokens, num_cores)
            first = core * run_of
            mine = T.max(0, T.min(run_of, tokens - first))
            T.copy(begins[core, :], next_ub)
            for tile in T.serial(T.ceildiv(mine, TILE)):
                row = first + tile * TILE
                valid = T.min(TILE, first + mine - row)
                T.copy(words[row : row + valid, :], words_ub[:valid, : 2 * K])
                with T.SimtVF(threads=threads):
                    for i in T.Parallel(TILE * out_pitch):
                        slot_ub[i // out_pitch, i % out_pitch] = -1
                with T.SimtVF(threads=threads):
                    for r in T.Parallel(N):
                        last = T.alloc_var("int32")
                        number = T.alloc_var("int32")
                        number = next_ub[r]
                        for t in T.serial(valid):
                            last = -1
                            for j in T.unroll(K):
                                if (
                                    words_ub[t, 2 * j] >= r * share
                                    and words_ub[t, 2 * j] < r * share + share
                                ):
                                    last = j
                            if last >= 0:
                                slot_ub[t, last] = number
                                number = number + 1
                        next_ub[r] = number
                T.copy(slot_ub[:valid, :K], slot[row : row + valid, :])

    return layout_slots
