"""Cost of reduce."""

from ascendkit.cost import Cost


def cost(num_rows, num_tokens, num_topk, hidden, num_bias=0):
    """Every row, bias and table entry read once, every token written once.

    Args:
        num_rows: rows that are summed, all of them used.
        num_tokens, num_topk, hidden: shape of the table and width of a row, bf16.
        num_bias: 0 to 2.
    """
    names = dict(rows=num_rows, t=num_tokens, k=num_topk, hidden=hidden, bias=num_bias)
    return (
        Cost(names)
        .flop("vector", "fp32", "additions", "(rows+t*bias)*hidden")
        .read("rows", "2*rows*hidden")
        .read("biases", "2*bias*t*hidden")
        .read("table (int32)", "4*t*k")
        .write("sums", "2*t*hidden")
    )
