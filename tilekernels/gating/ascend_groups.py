"""The best groups of a token on the Ascend 950: SIMT threads, a warp a token, a lane a group."""

from types import SimpleNamespace
from typing import Any

from tilekernels.machine import WARP


def group_macros(num_groups: int, per_group: int) -> Any:
    """``best_sum(scores, row, lane, top, total)``, the sum of a group's ``top`` (1 or 2) best
    scores, and ``take(lane, total, open)``: the best group not yet taken, the same in every lane.

    A NaN counts as -inf, and so does the sum of infinities of both signs.
    """
    from tilelang.ascend import language as T

    @T.macro
    def best_sum(scores_ub, row, lane, top, total):
        best = T.alloc_var("float32", init=-T.infinity("float32"))
        second = T.alloc_var("float32", init=-T.infinity("float32"))
        both = T.alloc_var("float32")
        if lane < num_groups:
            for i in T.serial(per_group):
                # Lanes start at different members, so that they meet in no bank.
                at = (i + lane) % per_group
                value = scores_ub[row, lane * per_group + at]
                if value > best:
                    second = best
                    best = value
                else:
                    if value > second:
                        second = value
        total[0] = best
        if top == 2:
            both = best + second
            total[0] = -T.infinity("float32")
            if both > -T.infinity("float32"):
                total[0] = both

    @T.macro
    def take(lane, total, open_, winner):
        value = T.alloc_var("float32")
        place = T.alloc_var("int32")
        value = -T.infinity("float32")
        place = WARP
        if open_[0] != 0:
            value = total[0]
        best = T.warp_reduce_max(value)
        if open_[0] != 0 and total[0] == best:
            place = lane
        winner[0] = T.warp_reduce_min(place)
        if winner[0] == lane:
            open_[0] = 0

    return SimpleNamespace(best_sum=best_sum, take=take)
