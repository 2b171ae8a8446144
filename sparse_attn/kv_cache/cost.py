"""Cost of writing tokens to a KV cache: norm, RoPE, quantise, store."""

from ascendkit.cost import Cost


def cost(num_tokens, hidden, entry_bytes):
    """Vector FLOPs and bytes; ``hidden`` bf16 values a token become ``entry_bytes`` of cache."""
    names = dict(num_tokens=num_tokens, hidden=hidden, entry_bytes=entry_bytes)
    return (
        Cost(names)
        .flop("vector", "fp32", "norm, RoPE, quantise", "12*num_tokens*hidden")
        .read("latent", "num_tokens*hidden*2")
        .write("cache entry", "num_tokens*entry_bytes", state=True)
    )
