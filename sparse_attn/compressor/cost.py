"""Cost of compressing keys and values: softmax-pool, norm, RoPE, quantise, write to the cache."""

from ascendkit.cost import Cost


def cost(num_tokens, width, ratio, entry_bytes, backward=False):
    """Vector FLOPs and bytes.

    Args:
        num_tokens: tokens pooled.
        width: fp32 values a token contributes (values and gates of all overlapping windows).
        ratio: tokens a cache entry stands for.
        entry_bytes: bytes written per entry (compressed KV and, where there is one, index key).
        backward: gradients of values and gates.
    """
    names = dict(num_tokens=num_tokens, width=width, ratio=ratio, entry_bytes=entry_bytes)
    names["passes"] = 2 if backward else 1
    return (
        Cost(names)
        .flop("vector", "fp32", "softmax, pool, norm, RoPE, quantise", "passes*8*num_tokens*width")
        .read("values and gates (fp32)", "passes*num_tokens*width*4", kept=True)
        .write("cache entries", "num_tokens/ratio*entry_bytes", state=True)
    )
