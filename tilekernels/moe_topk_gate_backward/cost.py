"""Cost of moe_topk_gate_backward."""

from ascendkit.cost import Cost


def cost(num_tokens, num_experts, num_topk, num_sequences=0):
    """Vector FLOPs and bytes.

    Args:
        num_tokens, num_experts: shape of the fp32 scores, and of the gradient.
        num_topk: experts of a token.
        num_sequences: rows of the auxiliary loss' gradient; 0 for none.
    """
    names = Cost(dict(t=num_tokens, e=num_experts, k=num_topk, s=num_sequences))
    found = (
        names.flop("vector", "fp32", "gradient", "12*t*e")
        .read("scores", "4*t*e")
        .read("indices, weights, gradient", "16*t*k")
        .write("logit gradient", "4*t*e")
    )
    return found.read("auxiliary gradient and mask", "4*s*e+t") if num_sequences else found
