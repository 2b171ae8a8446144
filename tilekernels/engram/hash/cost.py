"""Cost of hashing the last tokens into n-gram table rows."""

from ascendkit.cost import Cost


def cost(num_tokens, rows_per_token, max_ngram):
    """Integer work and bytes; one int64 row id per (order, head)."""
    names = dict(num_tokens=num_tokens, rows_per_token=rows_per_token, max_ngram=max_ngram)
    return (
        Cost(names)
        .flop("vector", "fp32", "multiply, xor, modulo", "4*num_tokens*rows_per_token*max_ngram")
        .read("token ids", "8*num_tokens*max_ngram")
        .write("row ids", "8*num_tokens*rows_per_token")
    )
