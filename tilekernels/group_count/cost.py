"""Cost of group_count."""

from ascendkit.cost import Cost


def cost(num_indices, num_groups):
    """Increments, and the bytes of indices and counts.

    Args:
        num_indices: int64 indices, num_tokens * num_topk.
        num_groups: int32 counters.
    """
    names = Cost(dict(n=num_indices, groups=num_groups))
    return (
        names.flop("vector", "int32", "increments", "n")
        .read("indices (int64)", "8*n")
        .write("counts (int32)", "4*groups")
        .write("counters on chip", "4*n", "onchip", planned=True)
    )
