"""Cost of mask_indices_by_tp."""

from ascendkit.cost import Cost


def cost(num_indices):
    """Two quotients with remainders an index, and the bytes in and out.

    Args:
        num_indices: int64 indices.
    """
    return (
        Cost(dict(n=num_indices))
        .flop("vector", "int32", "quotients, remainders, sum", "6*n")
        .read("indices (int64)", "8*n")
        .write("masked indices (int64)", "8*n")
    )
