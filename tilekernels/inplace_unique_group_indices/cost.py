"""Cost of inplace_unique_group_indices."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk):
    """Comparisons of pairs; indices read and written once.

    Args:
        num_tokens, num_topk: shape of the int64 indices. How many change depends on the data; all
            are counted as written.
    """
    return (
        Cost(dict(t=num_tokens, k=num_topk))
        .flop("vector", "int32", "comparisons of pairs", "t*k*(k-1)/2")
        .read("indices (int64)", "8*t*k")
        .write("indices (int64)", "8*t*k")
    )
