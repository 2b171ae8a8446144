"""What sparse prefill and sparse decode count alike."""

from ascendkit.cost import Cost
from ascendkit.formats import width


def selected_attention(names, kv_read):
    """FLOPs and bytes of attention over selected entries.

    Args:
        names: num_tokens, num_heads, qk_dim, v_dim, selected, window, entry_bytes, window_bytes;
            ``selected`` and ``window`` are the average entries a query attends to.
        kv_read: formula of the bytes of cache entries read from device memory.
    """
    return (
        Cost({**names, "w": width("bf16")})
        .flop(
            "cube",
            "bf16",
            "QK and PV",
            "2*num_tokens*num_heads*(selected+window)*(qk_dim+v_dim)",
        )
        .flop("vector", "fp32", "softmax", "5*num_tokens*num_heads*(selected+window)")
        .read("queries", "num_tokens*num_heads*qk_dim*w", kept=True)
        .read("cache entries", kv_read, kept=True, state=True)
        .write("output", "num_tokens*num_heads*v_dim*w")
        .read(
            "queries and gathered entries",
            "num_tokens*(num_heads*qk_dim*w+selected*entry_bytes+window*window_bytes)",
            level="l2",
            planned=True,
        )
        .write("output", "num_tokens*num_heads*v_dim*w", level="l2", planned=True)
    )
