"""Cost of normalize_weight."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk, backward=False):
    """Sums, quotients, and the bytes of weights in and out.

    Args:
        num_tokens, num_topk: shape of the fp32 weights.
        backward: gradient of the weights from those of both outputs.
    """
    names = Cost(dict(t=num_tokens, k=num_topk))
    if backward:
        return (
            names.flop("vector", "fp32", "weighted sum, difference, quotient", "5*t*k")
            .read("denominator and its gradient", "8*t")
            .read("normalized weights and their gradient", "8*t*k")
            .write("gradient of the weights", "4*t*k")
        )
    return (
        names.flop("vector", "fp32", "sums and quotients", "2*t*k")
        .read("weights", "4*t*k")
        .write("denominator", "4*t")
        .write("normalized weights", "4*t*k")
    )
