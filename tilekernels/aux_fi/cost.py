"""Cost of aux_fi."""

from ascendkit.cost import Cost


def cost(num_indices, num_groups):
    """Increments, a product and a quotient an expert, and the bytes of choices and frequencies.

    Args:
        num_indices: int64 choices, num_tokens * num_topk.
        num_groups: experts, float32 frequencies.
    """
    names = Cost(dict(n=num_indices, experts=num_groups))
    return (
        names.flop("vector", "int32", "increments", "n")
        .flop("vector", "fp32", "products and quotients", "2*experts")
        .read("choices (int64)", "8*n")
        .write("frequencies (fp32)", "4*experts")
        .write("counters on chip", "4*n", "onchip", planned=True)
    )
