"""Cost of reduce_fused."""

from ascendkit.cost import Cost


def cost(num_tokens, num_topk, hidden, element_bytes=2, out_bytes=2):
    """Every place's row read once, every token's row written once.

    Args:
        num_tokens, num_topk: shape of the int32 places; all are counted as valid.
        hidden: columns.
        element_bytes, out_bytes: of an element of the input and of the output.
    """
    names = dict(t=num_tokens, k=num_topk, h=hidden, e=element_bytes, o=out_bytes)
    return (
        Cost(names)
        .flop("vector", "fp32", "multiply-adds", "2*t*k*h")
        .read("rows", "t*k*h*e")
        .read("places and weights", "8*t*k")
        .write("sums", "t*h*o")
    )
