"""Cost of dense multi-head latent attention (MLA), expanded or absorbed."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def cost(
    num_tokens,
    num_heads,
    qk_dim,
    v_dim,
    kv_len,
    kv_entries,
    entry_bytes,
    dtype="bf16",
    backward=False,
    cached=False,
):
    """FLOPs and bytes.

    Args:
        num_tokens, num_heads: queries.
        qk_dim, v_dim: 192/128 expanded, 576/512 absorbed.
        kv_len: keys a query attends to, on average (half the context when causal).
        kv_entries: distinct cache entries read.
        entry_bytes: bytes of one entry (K and V of all heads expanded, one latent absorbed).
        cached: entries come from the cache, not from a product of this step.
        backward: 2.5 times the forward's FLOPs: scores are recomputed.
    """
    names = dict(num_tokens=num_tokens, num_heads=num_heads, qk_dim=qk_dim, v_dim=v_dim)
    names |= dict(kv_len=kv_len, kv_entries=kv_entries, entry_bytes=entry_bytes, w=width(dtype))
    names |= dict(passes=2.5 if backward else 1, moves=2 if backward else 1)
    return (
        Cost(names)
        .flop("cube", "bf16", "QK and PV", "passes*2*num_tokens*num_heads*kv_len*(qk_dim+v_dim)")
        .flop("vector", "fp32", "softmax", "passes*5*num_tokens*num_heads*kv_len")
        .read("queries", "moves*num_tokens*num_heads*qk_dim*w", kept=True)
        .read("keys and values", "moves*kv_entries*entry_bytes", kept=True, state=cached)
        .write("output", "moves*num_tokens*num_heads*v_dim*w")
    )
