"""Cost of expert routing: scores, top-k (group-limited or not), normalised weights."""

from ascendkit.cost import Cost


def cost(num_tokens, num_experts, num_topk, backward=False):
    """Vector FLOPs and bytes.

    Args:
        num_tokens: rows of the fp32 logits.
        num_experts, num_topk: columns, and experts chosen.
        backward: gradient of the logits from that of the weights; reads scores and choices.
    """
    names = Cost(dict(num_tokens=num_tokens, num_experts=num_experts, num_topk=num_topk))
    if backward:
        return (
            names.flop("vector", "fp32", "gradient", "12*num_tokens*num_experts")
            .read("scores", "4*num_tokens*num_experts")
            .read("indices, weights, gradient", "16*num_tokens*num_topk")
            .write("logit gradient", "4*num_tokens*num_experts")
        )
    return (
        names.flop(
            "vector", "fp32", "score and k arg-max passes", "num_tokens*num_experts*(10+num_topk)"
        )
        .read("logits", "4*num_tokens*num_experts", kept=True)
        .write("indices (int64) and weights (fp32)", "12*num_tokens*num_topk")
    )
