"""The two TileLang programs of get_fused_mapping on the Ascend 950."""

from typing import Any

from tilekernels.machine import WARP, padded

TILE = 2048
"""Choices of one copy: 16 KiB."""
THREADS = 1024
COUNTERS = 1 << 15
"""32-bit counters: 128 KiB, as many threads' worth as they hold."""
MAX_PIECES = 128


def pieces(num_experts: int) -> int:
    """Threads with counters of their own, whole warps."""
    return min(MAX_PIECES, COUNTERS // num_experts // WARP * WARP)


def count_program(num_experts: int, num_cores: int) -> Any:
    """The first launch: int64 choices as words (2 n,) -> int32 (cores, padded experts)."""
    from tilelang.ascend import language as T

    E, room = num_experts, padded(num_experts)
    W = T.dynamic("num_words")

    @T.prim_func
    def count_experts(
        words: T.Tensor((W,), "int32"),
        counts: T.Tensor((num_cores, room), "int32"),
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((2 * TILE,), "int32")
            counts_ub = T.alloc_shared((room,), "int32")
            per = T.ceildiv(W // 2, num_cores)
            mine = T.max(T.min(per, W // 2 - core * per), 0)
            with T.SimtVF(threads=THREADS):
                for e in T.Parallel(room):
                    counts_ub[e] = 0
            for tile in T.serial(T.ceildiv(mine, TILE)):
                first = core * per + tile * TILE
                valid = T.min(TILE, mine - tile * TILE)
                T.copy(words[2 * first : 2 * first + 2 * valid], words_ub[: 2 * valid])
                with T.SimtVF(threads=THREADS):
                    for i in T.Parallel(TILE):
                        if i < valid:
                            # The high word of an index in range is zero.
                            expert = words_ub[2 * i]
                            if words_ub[2 * i + 1] == 0 and expert >= 0 and expert < E:
                                T.atomic_add(counts_ub[expert], 1)
            T.copy(counts_ub, counts[core, :])

    return count_experts


def place_program(num_experts: int, num_topk: int, num_cores: int) -> Any:
    """The second launch: choices and counts -> the seven outputs."""
    from tilelang.ascend import language as T

    E, K, P, room = num_experts, num_topk, pieces(num_experts), padded(num_experts)
    threads = -(-E // WARP) * WARP
    steps = tuple(1 << i for i in range((E - 1).bit_length()))
    last = len(steps) % 2
    W, n, X = T.dynamic("num_words, num_choices, num_expanded_tokens")

    @T.macro
    def fill(maps, begin, end, first, stride):
        for i in T.serial(T.ceildiv(T.max(end - begin - first, 0), stride)):
            at = begin + first + i * stride
            if at < end:
                maps[0][at] = -1
                maps[1][at] = -1
                maps[2][at] = -1

    @T.macro
    def expert_of(words_ub, i):
        found = T.alloc_var("int32")
        found = -1
        if words_ub[2 * i + 1] == 0 and words_ub[2 * i] >= 0 and words_ub[2 * i] < E:
            found = words_ub[2 * i]
        return found

    @T.prim_func
    def place_entries(
        words: T.Tensor((W,), "int32"),
        counts: T.Tensor((num_cores, room), "int32"),
        pos_to_expert: T.Tensor((X,), "int32"),
        pos_to_token: T.Tensor((X,), "int32"),
        pos_to_token_topk: T.Tensor((X,), "int32"),
        places: T.Tensor((n,), "int32"),
        expert_start: T.Tensor((E,), "int32"),
        expert_end: T.Tensor((E,), "int32"),
        sizes: T.Tensor((E,), "int32"),
        alignment: T.int32,
    ):
        with T.Kernel(num_cores) as core:
            words_ub = T.alloc_shared((2 * TILE,), "int32")
            places_ub = T.alloc_shared((TILE,), "int32")
            ends_ub = T.alloc_shared((2, room), "int32")
            next_ub = T.alloc_shared((room,), "int32")
            filled_ub = T.alloc_shared((room,), "int32")
            counters_ub = T.alloc_shared((P, E), "int32")
            maps = (pos_to_expert, pos_to_token, pos_to_token_topk)
            per = T.ceildiv(W // 2, num_cores)
            mine = T.max(T.min(per, W // 2 - core * per), 0)
            with T.SimtVF(threads=threads):
                tid = T.get_thread_binding(0)
                before = T.alloc_var("int32", init=0)
                total = T.alloc_var("int32", init=0)
                size = T.alloc_var("int32", init=0)
                # Sizes, and their running sum over experts.
                if tid < E:
                    for c in T.serial(num_cores):
                        if c == core:
                            before = total
                        total = total + counts[c, tid]
                    size = T.truncdiv(total + alignment - 1, alignment) * alignment
                    ends_ub[0, tid] = size
                T.sync_threads()
                for i, step in enumerate(steps):
                    if tid < E:
                        if tid >= step:
                            ends_ub[(i + 1) % 2, tid] = (
                                ends_ub[i % 2, tid] + ends_ub[i % 2, tid - step]
                            )
                        else:
                            ends_ub[(i + 1) % 2, tid] = ends_ub[i % 2, tid]
                    T.sync_threads()
                if tid < E:
                    start = T.alloc_var("int32", init=ends_ub[last, tid] - size)
                    next_ub[tid] = start + before
                    filled_ub[tid] = start + total
                    if core == 0:
                        expert_start[tid] = start
                        expert_end[tid] = start + size
                        sizes[tid] = size
            for tile in T.serial(T.ceildiv(mine, TILE)):
                first = core * per + tile * TILE
                valid = T.min(TILE, mine - tile * TILE)
                T.copy(words[2 * first : 2 * first + 2 * valid], words_ub[: 2 * valid])
                piece = T.ceildiv(valid, P)
                with T.SimtVF(threads=THREADS):
                    for i in T.Parallel(P * E):
                        counters_ub[i // E, i % E] = 0
                with T.SimtVF(threads=P):
                    p = T.get_thread_binding(0)
                    for i in T.serial(T.min(piece, valid - p * piece)):
                        expert = expert_of(words_ub, p * piece + i)
                        if expert >= 0:
                            counters_ub[p, expert] = counters_ub[p, expert] + 1
                with T.SimtVF(threads=threads):
                    e = T.get_thread_binding(0)
                    running = T.alloc_var("int32", init=0)
                    seen = T.alloc_var("int32", init=0)
                    if e < E:
                        running = next_ub[e]
                        for p in T.serial(P):
                            seen = counters_ub[p, e]
                            counters_ub[p, e] = running
                            running = running + seen
                        next_ub[e] = running
                with T.SimtVF(threads=P):
                    p = T.get_thread_binding(0)
                    for i in T.serial(T.min(piece, valid - p * piece)):
                        expert = expert_of(words_ub, p * piece + i)
                        entry = first + p * piece + i
                        place = T.alloc_var("int32")
                        place = -1
                        if expert >= 0:
                            place = counters_ub[p, expert]
                            counters_ub[p, expert] = place + 1
                            if place < X:
                                pos_to_expert[place] = expert
                                pos_to_token[place] = T.truncdiv(entry, K)
                                pos_to_token_topk[place] = entry
                            else:
                                place = -1
                        places_ub[p * piece + i] = place
                T.copy(places_ub[:valid], places[first : first + valid])
            # Padding behind every expert's entries, and behind the last expert.
            with T.SimtVF(threads=THREADS):
                tid = T.get_thread_binding(0)
                for i in T.serial(T.ceildiv(E, num_cores)):
                    owner = i * num_cores + core
                    if owner < E:
                        fill(maps, filled_ub[owner], T.min(ends_ub[last, owner], X), tid, THREADS)
                fill(maps, ends_ub[last, E - 1], X, core * THREADS + tid, num_cores * THREADS)

    return place_entries
