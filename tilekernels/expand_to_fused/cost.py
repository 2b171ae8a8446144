"""Cost of expand_to_fused."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk, num_expanded_tokens, row_bytes, scale_bytes=0):
    """Every token's row read once, every row of the result written once.

    Args:
        num_tokens, num_topk: shape of the int32 places.
        num_expanded_tokens: rows of the result, padding included.
        row_bytes: bytes of a row.
        scale_bytes: bytes of its scales, 0 without.
    """
    names = dict(t=num_tokens, k=num_topk, x=num_expanded_tokens, row=row_bytes, scales=scale_bytes)
    cost = (
        Cost(names)
        .read("rows", "t*row")
        .read("places (int32)", "4*t*k")
        .read("experts of places (int32)", "4*x")
        .write("expanded rows", "x*row")
    )
    if scale_bytes:
        cost = cost.read("scales", "t*scales").write("expanded scales", "x*scales")
    return cost
