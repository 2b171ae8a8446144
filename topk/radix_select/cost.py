"""Cost of selecting the k largest of every row."""

from ascendkit.cost import Cost


def cost(rows, row_len, num_topk, value_bytes=2, index_bytes=4, return_value=False):
    """Vector work and bytes: each row read once, k indices (and values) written.

    Candidates are looked at once for every eight bits of value and 32-bit index: cut out a digit,
    compare it, count it, move on.

    Args:
        rows, row_len: rows and average candidates a row.
        num_topk: indices kept.
        value_bytes: bytes of one logit.
        index_bytes: bytes of one index.
        return_value: whether the k values are written too.
    """
    names = dict(rows=rows, row_len=row_len, num_topk=num_topk)
    names |= dict(value_bytes=value_bytes, index_bytes=index_bytes, values=int(return_value))
    names |= dict(candidates=candidates(row_len, num_topk))
    return (
        Cost(names)
        .flop("vector", "fp32", "compare with the threshold", "2*rows*row_len")
        .flop("vector", "fp32", "select", "4*rows*candidates*(value_bytes+4)")
        .read("logits", "rows*row_len*value_bytes")
        .write("indices", "rows*num_topk*index_bytes")
        .write("values", "rows*num_topk*value_bytes*values")
    )


def candidates(row_len, num_topk, block=4096, slack=4096):
    """Candidates of a row in all its selections, at most in the mean: no row has more than its
    elements and ``num_topk`` survivors for every ``slack`` of them."""
    most = float(row_len) * (1 + num_topk / slack)
    return min(most, expected_work(row_len, num_topk, block, slack))


def expected_work(row_len, num_topk, block=4096, slack=4096):
    """Candidates a row's compactions look at, at most in the mean over visit orders.

    The bound of docs/topk.md, (1 + k/B2)(k + B + B2) H_m.
    """
    blocks = -(-int(row_len) // block)
    harmonic = sum(1 / i for i in range(1, blocks + 1))
    return (1 + num_topk / slack) * (num_topk + block + slack) * harmonic
