"""Cost of topk_sum_and_topk_group_idx."""

from ascendkit.cost import Cost


def cost(num_tokens, num_groups, per_group, num_topk_groups):
    """Comparisons, and the bytes of scores and indices.

    Args:
        num_tokens, num_groups, per_group: shape of the fp32 scores.
        num_topk_groups: int64 indices of every token.
    """
    names = Cost(dict(t=num_tokens, g=num_groups, e=per_group, k=num_topk_groups))
    return (
        names.flop("vector", "fp32", "two best of a group, places of groups", "t*g*(2*e+g)")
        .read("scores", "4*t*g*e")
        .write("indices (int64)", "8*t*k")
    )
