"""Cost of layout."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk, num_experts, num_ranks):
    """Bytes of choices, counts and slots; comparisons that find the last choice on a rank.

    Args:
        num_tokens, num_topk: shape of the int64 choices.
        num_experts, num_ranks: int32 counts.
    """
    names = dict(t=num_tokens, k=num_topk, experts=num_experts, ranks=num_ranks)
    return (
        Cost(names)
        .flop("vector", "int32", "later choice on the same rank", "t*k*(k-1)/2")
        .read("choices (int64)", "8*t*k")
        .write("slots (int32)", "4*t*k")
        .write("counts (int32)", "4*(experts+ranks)")
    )
