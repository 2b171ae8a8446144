"""Cost of expand_to_fused_with_sf."""

from tilekernels.expand_to_fused.cost import cost as expand


def cost(num_tokens, num_topk, num_expanded_tokens, row_bytes, scale_bytes):
    """Rows and scales read once, expanded ones written once; see expand_to_fused."""
    return expand(num_tokens, num_topk, num_expanded_tokens, row_bytes, scale_bytes)
