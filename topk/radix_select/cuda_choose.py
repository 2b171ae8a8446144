"""How a CTA finds the k-th best of many by counting, and keeps what reaches it."""

from types import SimpleNamespace
from typing import Any

from topk.radix_select.cuda_format import LAST_PLACE, SETS, TIES, WARP, keys


def choose(dtype: str, threads: int) -> Any:
    """Macros of the selection."""
    from tilelang import language as T

    k = keys(dtype)
    u, reached, ONES, NAN_KEY = k.u, k.reached, k.ONES, k.NAN_KEY
    NT = threads

    @T.macro
    def tally(w, state, turns, tid):
        # Sums of two words over the CTA. Three sets of counters take turns, so that one barrier
        # is enough: what is cleared now was read before the last one.
        here = SETS + 2 * turns[0]
        turns[0] = T.if_then_else(turns[0] == 2, 0, turns[0] + 1)
        for i in (0, 1):
            w[i] = T.call_extern("uint32", "ak_sum", w[i])
        if tid % WARP == 0:
            for i in (0, 1):
                T.call_extern("void", "ak_add", T.address_of(state[here + i]), w[i])
        if tid == 0:
            state[SETS + 2 * turns[0]] = 0
            state[SETS + 2 * turns[0] + 1] = 0
        T.sync_threads()
        for i in (0, 1):
            w[i] = T.Cast("uint32", state[here + i])

    @T.macro
    def quarter(lo, hi, at):
        # Three keys between lo and hi.
        part = T.max((hi - lo) >> u(2), u(1))
        for i in (0, 1, 2):
            at[i] = T.min(lo + part * u(i + 1), hi)

    @T.macro
    def narrow_down(w, base, k, at, r, c):
        # r: lo, hi; c: candidates at or above each. At least k are at or above lo.
        if base + T.Cast("int32", w[1]) >= k:
            r[0] = at[2]
            c[0] = base + T.Cast("int32", w[1])
        else:
            r[1] = at[2]
            c[1] = base + T.Cast("int32", w[1])
            if base + T.Cast("int32", w[0] >> u(16)) >= k:
                r[0] = at[1]
                c[0] = base + T.Cast("int32", w[0] >> u(16))
            else:
                r[1] = at[1]
                c[1] = base + T.Cast("int32", w[0] >> u(16))
                if base + T.Cast("int32", w[0] & u(0xFFFF)) >= k:
                    r[0] = at[0]
                    c[0] = base + T.Cast("int32", w[0] & u(0xFFFF))
                else:
                    r[1] = at[0]
                    c[1] = base + T.Cast("int32", w[0] & u(0xFFFF))

    @T.macro
    def find_floor(x0, x1, state, turns, pivot, r, c, k, room, tid, valid):
        # A key that k to k + room elements of the first block reach, counted in registers.
        w = T.alloc_local((2,), "uint32")
        at = T.alloc_local((3,), "uint32")
        r[0] = u(0)
        r[1] = u(NAN_KEY)
        c[0] = k + room + 1
        c[1] = 0
        while T.And(r[1] - r[0] > u(1), c[0] - k > room):
            quarter(r[0], r[1], at)
            w[0] = u(0)
            w[1] = u(0)
            for i in (0, 1, 2):
                limit = reached(at[i])
                some = T.call_extern("uint32", "ak_all", T.address_of(x0[0]), limit) & valid[0]
                more = T.call_extern("uint32", "ak_all", T.address_of(x1[0]), limit) & valid[1]
                number = T.Cast("uint32", T.popcount(some) + T.popcount(more))
                w[i // 2] = w[i // 2] + (number << u(16 * (i % 2)))
            tally(w, state, turns, tid)
            narrow_down(w, 0, k, at, r, c)
        pivot[0] = r[0]
        pivot[1] = u(0)

    @T.macro
    def find_pivot(keys, places, state, turns, pivot, top, v, r, c, n, k, spare, few, tid):
        # The k-th best of n candidates, from the last pivot up, by counting: until those at or
        # above a key are k and at most `spare` more, or those between two keys at most `few`.
        # Candidates from pivot to top are undecided: v[1] of them, of which v[0] are wanted.
        w = T.alloc_local((2,), "uint32")
        at = T.alloc_local((3,), "uint32")
        w[0] = u(0)
        w[1] = u(0)
        for i in T.serial(T.ceildiv(n, NT)):
            if i * NT + tid < n:
                w[0] = T.max(w[0], keys[i * NT + tid])
        here = SETS + 2 * turns[0]
        turns[0] = T.if_then_else(turns[0] == 2, 0, turns[0] + 1)
        T.call_extern("void", "ak_most", T.address_of(state[here]), w[0])
        if tid == 0:
            state[SETS + 2 * turns[0]] = 0
            state[SETS + 2 * turns[0] + 1] = 0
        T.sync_threads()
        r[0] = pivot[0]
        r[1] = T.Cast("uint32", state[here]) + u(1)
        c[0] = n
        c[1] = 0
        while T.And(T.And(r[1] - r[0] > u(1), c[0] - k > spare), c[0] - c[1] > few):
            quarter(r[0], r[1], at)
            w[0] = u(0)
            w[1] = u(0)
            for i in T.serial(T.ceildiv(n, NT)):
                if i * NT + tid < n:
                    key = keys[i * NT + tid]
                    w[0] = w[0] + T.if_then_else(key >= at[0], u(1), u(0))
                    w[0] = w[0] + T.if_then_else(key >= at[1], u(1 << 16), u(0))
                    w[1] = w[1] + T.if_then_else(key >= at[2], u(1), u(0))
            tally(w, state, turns, tid)
            narrow_down(w, 0, k, at, r, c)
        pivot[0] = r[0]
        pivot[1] = u(0)
        top[0] = r[1]
        top[1] = u(LAST_PLACE + 1)
        if T.And(c[0] - k > spare, c[0] - c[1] > few):
            # Equal keys: the earlier place is the larger number.
            above = T.alloc_var("int32", init=0)
            above = c[1]
            r[0] = u(0)
            r[1] = u(LAST_PLACE + 1)
            while T.And(T.And(r[1] - r[0] > u(1), c[0] - k > spare), c[0] - c[1] > few):
                quarter(r[0], r[1], at)
                w[0] = u(0)
                w[1] = u(0)
                for i in T.serial(T.ceildiv(n, NT)):
                    if i * NT + tid < n:
                        if keys[i * NT + tid] == pivot[0]:
                            late = T.Cast("uint32", LAST_PLACE - places[i * NT + tid])
                            w[0] = w[0] + T.if_then_else(late >= at[0], u(1), u(0))
                            w[0] = w[0] + T.if_then_else(late >= at[1], u(1 << 16), u(0))
                            w[1] = w[1] + T.if_then_else(late >= at[2], u(1), u(0))
                tally(w, state, turns, tid)
                narrow_down(w, above, k, at, r, c)
            pivot[1] = r[0]
            top[1] = r[1]
        v[0] = k - c[1]
        v[1] = c[0] - c[1]

    @T.macro
    def keep_best(keys, places, tied, ranks, state, pivot, top, v, n, exact, tid):
        # What reaches the pivot moves to the front. Where `exact`, undecided candidates that are
        # not all wanted go to a list, and each counts those before it.
        lane = tid % WARP
        k4 = T.alloc_local((4,), "uint32")
        p4 = T.alloc_local((4,), "int32")
        votes = T.alloc_local((4,), "uint32")
        if tid == 0:
            state[0] = 0
            state[4] = 0
        if tid < TIES:
            ranks[tid] = 0
        T.sync_threads()
        for c in T.serial(T.ceildiv(n, 4 * NT)):
            for q in tuple(range(4)):
                i = c * (4 * NT) + q * NT + tid
                k4[q] = u(0)
                p4[q] = LAST_PLACE
                if i < n:
                    k4[q] = keys[i]
                    p4[q] = places[i]
                late = T.Cast("uint32", LAST_PLACE - p4[q])
                stays = T.alloc_var("int32", init=0)
                stays = 0
                if T.And(
                    i < n,
                    T.Or(k4[q] > pivot[0], T.And(k4[q] == pivot[0], late >= pivot[1])),
                ):
                    stays = 1
                if exact:
                    undecided = T.And(k4[q] < top[0], late < top[1])
                    if T.And(T.And(stays == 1, v[0] != v[1]), undecided):
                        stays = 0
                        tie = T.call_extern("int32", "ak_take", T.address_of(state[4]), 1)
                        tied[tie] = k4[q]
                        tied[TIES + tie] = T.Cast("uint32", p4[q])
                votes[q] = T.Cast("uint32", T.ballot_sync(stays))
            # All have read; what is written lies at or before what has been read.
            T.sync_threads()
            spot = T.alloc_var("int32", init=0)
            if lane == 0:
                spot = T.call_extern(
                    "int32", "ak_take", T.address_of(state[0]),
                    T.Cast("int32", T.popcount(votes[0]) + T.popcount(votes[1])
                           + T.popcount(votes[2]) + T.popcount(votes[3])),
                )  # fmt: skip
            spot = T.shfl_sync(spot, 0)
            below = (u(1) << T.Cast("uint32", lane)) - u(1)
            for q in tuple(range(4)):
                if ((votes[q] >> T.Cast("uint32", lane)) & u(1)) != u(0):
                    mine = spot + T.Cast("int32", T.popcount(votes[q] & below))
                    keys[mine] = k4[q]
                    places[mine] = p4[q]
                spot = spot + T.Cast("int32", T.popcount(votes[q]))
        T.sync_threads()
        if exact:
            # Every pair of the list once, a stripe of it for each group of TIES threads.
            c = tid % TIES
            ahead = T.alloc_var("int32", init=0)
            ahead = 0
            if T.And(v[0] != v[1], c < v[1]):
                for i in T.serial(T.ceildiv(v[1], NT // TIES)):
                    j = i * (NT // TIES) + tid // TIES
                    if j < v[1]:
                        before = T.And(tied[j] == tied[c], tied[TIES + j] < tied[TIES + c])
                        if T.Or(tied[j] > tied[c], before):
                            ahead = ahead + 1
                if ahead > 0:
                    T.call_extern("void", "ak_add", T.address_of(ranks[c]), T.Cast("uint32", ahead))
            T.sync_threads()
            if T.And(v[0] != v[1], tid < v[1]):
                if ranks[tid] < v[0]:
                    keys[state[0] + ranks[tid]] = tied[tid]
                    places[state[0] + ranks[tid]] = T.Cast("int32", tied[TIES + tid])
            T.sync_threads()

    return SimpleNamespace(
        tally=tally,
        quarter=quarter,
        narrow_down=narrow_down,
        find_floor=find_floor,
        find_pivot=find_pivot,
        keep_best=keep_best,
    )
