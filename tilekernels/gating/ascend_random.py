"""Distinct experts at random on the Ascend 950: Philox and the order of ``routing.at_random``."""

from typing import Any

from ascendkit.philox import MULTIPLIERS, ROUNDS, WEYL, WORD
from tilekernels.gating import SLOTS

SETTLED = (1 << 31) - 1


def draw_macro(slots: int) -> Any:
    """``draw(token, lane, ep_rank, num_experts, found, weight)`` of SIMT threads, a slot a lane."""
    from tilelang.ascend import language as T

    @T.macro
    def product(word, multiplier, parts):
        wide = T.alloc_var("uint64")
        wide = T.cast(word, "uint64") * T.cast(T.uint32(multiplier), "uint64")
        parts[0] = T.cast(wide >> T.uint64(32), "uint32")
        parts[1] = T.cast(wide & T.uint64(WORD), "uint32")

    @T.macro
    def draw(token, lane, ep_rank, num_experts, found, weight):
        words = T.alloc_local((4,), "uint32")
        first = T.alloc_local((2,), "uint32")
        second = T.alloc_local((2,), "uint32")
        least = T.alloc_var("int32")
        place = T.alloc_var("int32")
        mine = T.alloc_var("int32", init=SETTLED)
        sequence = T.cast(token, "int64") * T.int64(SLOTS) + T.cast(lane, "int64")
        words[0] = T.uint32(0)
        words[1] = T.uint32(0)
        words[2] = T.cast(sequence & T.int64(WORD), "uint32")
        words[3] = T.cast(sequence >> T.int64(32), "uint32")
        for r in tuple(range(ROUNDS)):
            product(words[0], MULTIPLIERS[0], first)
            product(words[2], MULTIPLIERS[1], second)
            low_key = T.cast(ep_rank, "uint32") + T.uint32(r * WEYL[0] & WORD)
            words[0] = second[0] ^ words[1] ^ low_key
            words[1] = second[1]
            words[2] = first[0] ^ words[3] ^ T.uint32(r * WEYL[1] & WORD)
            words[3] = first[1]
        # The product is exact, so that a fused multiply-add gives the same.
        weight[0] = T.cast(words[0], "float32") * T.float32(2.0**-32) + T.float32(2.0**-33)
        if lane < slots:
            mine = T.cast(words[1] % T.cast(num_experts - lane, "uint32"), "int32")
        found[0] = -1
        for _ in T.serial(slots):
            least = T.warp_reduce_min(mine)
            place = T.warp_reduce_min(T.if_then_else(mine == least, lane, SLOTS))
            if lane == place:
                found[0] = mine
                mine = SETTLED
            else:
                if lane > place and mine >= least and mine != SETTLED:
                    mine = mine + 1

    return draw
