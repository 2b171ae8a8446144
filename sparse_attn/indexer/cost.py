"""Cost of the lightning indexer's logits."""

from ascendkit.cost import Cost
from ascendkit.formats import product_dtype


def cost(
    num_tokens,
    num_heads,
    head_dim,
    keys,
    key_entries,
    key_bytes,
    dtype="mxfp4",
    out_bytes=2,
    backward=False,
):
    """FLOPs and bytes.

    Args:
        num_tokens, num_heads, head_dim: index queries.
        keys: index keys a query scores, on average.
        key_entries: index keys read from device memory (distinct, or per sequence in decode).
        key_bytes: bytes of one key, scales included.
        dtype: format of queries and keys.
        out_bytes: bytes of one logit.
        backward: twice the FLOPs.
    """
    names = dict(num_tokens=num_tokens, num_heads=num_heads, head_dim=head_dim, keys=keys)
    names |= dict(key_entries=key_entries, key_bytes=key_bytes, out_bytes=out_bytes)
    names["passes"] = 2 if backward else 1
    return (
        Cost(names)
        .flop(
            "cube", product_dtype(dtype, dtype), "QK", "passes*2*num_tokens*keys*num_heads*head_dim"
        )
        .flop("vector", "fp32", "ReLU and weighted sum", "passes*3*num_tokens*keys*num_heads")
        .read("index queries", "num_tokens*num_heads*head_dim*key_bytes/head_dim")
        .read("index keys", "key_entries*key_bytes", state=True)
        .write("logits", "num_tokens*keys*out_bytes")
    )
