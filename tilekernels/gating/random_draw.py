"""Distinct experts at random, in TileLang for every machine: the order of ``routing.at_random``."""

from collections.abc import Callable
from typing import Any

from ascendkit.philox import MULTIPLIERS, ROUNDS, WEYL, WORD
from tilekernels.gating import SLOTS

SETTLED = (1 << 31) - 1


def draw_macro(T: Any, slots: int, least_of: Callable[..., Any]) -> Any:
    """``draw(token, lane, ep_rank, num_experts, found, weight)`` by Philox, a slot a lane.

    Args:
        T: TileLang's language of the machine.
        least_of: the minimum of an int32 over the lanes of a token.
    """

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
            least = least_of(mine)
            place = least_of(T.if_then_else(mine == least, lane, SLOTS))
            if lane == place:
                found[0] = mine
                mine = SETTLED
            else:
                if lane > place and mine >= least and mine != SETTLED:
                    mine = mine + 1

    return draw
