"""Cost of get_fused_mapping."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk, num_experts, num_expanded_tokens):
    """Choices read for counting and again for placing; three maps a position, one a choice.

    Args:
        num_tokens, num_topk: shape of the int64 choices.
        num_experts: runs, each with start, end and size.
        num_expanded_tokens: positions.
    """
    names = dict(t=num_tokens, k=num_topk, e=num_experts, x=num_expanded_tokens)
    return (
        Cost(names)
        .flop("vector", "int32", "counts and places", "4*t*k")
        .read("choices (int64)", "8*t*k")
        .write("places (int32)", "4*t*k")
        .write("expert, token and choice of every position (int32)", "12*x")
        .write("starts, ends and sizes (int32)", "12*e")
        .read("choices, counted and placed", "16*t*k", "l2", planned=True)
        .write("maps", "4*t*k+12*x+12*e", "l2", planned=True)
    )
