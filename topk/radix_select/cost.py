"""Cost of selecting the k largest of every row."""

from ascendkit.cost import Cost


def cost(rows, row_len, num_topk, value_bytes=2, index_bytes=4):
    """Vector work and bytes: each row read once, k indices written.

    Args:
        rows, row_len: rows and average candidates a row.
        num_topk: indices kept.
        value_bytes: bytes of one logit.
        index_bytes: bytes of one index.
    """
    names = dict(rows=rows, row_len=row_len, num_topk=num_topk)
    names |= dict(value_bytes=value_bytes, index_bytes=index_bytes)
    return (
        Cost(names)
        .flop("vector", "fp32", "compare with the threshold", "2*rows*row_len")
        .read("logits", "rows*row_len*value_bytes")
        .write("indices", "rows*num_topk*index_bytes")
    )
