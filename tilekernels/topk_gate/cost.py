"""Cost of topk_gate."""

from ascendkit.cost import Cost


def cost(num_tokens, num_experts, num_topk):
    """Comparisons of k arg-max passes and the bytes of scores and indices.

    Args:
        num_tokens, num_experts: shape of the fp32 scores.
        num_topk: int64 indices of every token.
    """
    names = Cost(dict(num_tokens=num_tokens, num_experts=num_experts, num_topk=num_topk))
    return (
        names.flop("vector", "fp32", "k arg-max passes", "num_tokens*num_experts*num_topk")
        .read("scores", "4*num_tokens*num_experts")
        .write("indices (int64)", "8*num_tokens*num_topk")
        # A kernel keeps the scores on chip and compares about k + 2 candidates with each other.
        .read("scores", "4*num_tokens*num_experts", "onchip", planned=True)
        .read("candidates", "8*num_tokens*(num_topk+2)**2", "onchip", planned=True)
        .write("indices", "8*num_tokens*num_topk", "onchip", planned=True)
    )
