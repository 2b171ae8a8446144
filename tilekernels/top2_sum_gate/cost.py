"""Cost of top2_sum_gate: that of the gate without groups, since groups move no bytes."""

from tilekernels.moe_topk_gate.cost import cost as plain


def cost(num_tokens, num_experts, num_topk):
    """See ``moe_topk_gate``.

    Args:
        num_tokens, num_experts, num_topk: shape of the fp32 logits, and experts chosen.
    """
    return plain(num_tokens, num_experts, num_topk)
