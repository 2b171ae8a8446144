"""Cost of sparse attention in prefill and training: entries are shared between queries."""

from ascendkit.cost import Cost
from sparse_attn.counting import selected_attention


def cost(
    num_tokens,
    num_heads,
    qk_dim,
    v_dim,
    selected,
    window,
    entry_bytes,
    window_bytes,
    entries,
    window_entries,
    backward=False,
):
    """FLOPs and bytes.

    Args:
        num_tokens, num_heads, qk_dim, v_dim: queries.
        selected, window: entries a query attends to, on average, by kind.
        entry_bytes, window_bytes: bytes of one entry of each kind.
        entries, window_entries: distinct entries of each kind read from device memory.
        backward: 2.5 times the FLOPs; key gradients are scattered with fp32 atomics in L2.
    """
    names = {k: v for k, v in locals().items() if k != "backward"}
    forward = selected_attention(names, "entries*entry_bytes+window_entries*window_bytes")
    if not backward:
        return forward
    names = {**forward.params, "passes": 2.5}
    return (
        Cost(names)
        .flop(
            "cube",
            "bf16",
            "five products instead of two",
            "passes*2*num_tokens*num_heads*(selected+window)*(qk_dim+v_dim)",
        )
        .flop("vector", "fp32", "softmax", "passes*5*num_tokens*num_heads*(selected+window)")
        .read("queries, output, its gradient", "num_tokens*num_heads*(qk_dim+2*v_dim)*w")
        .read("cache entries", "entries*entry_bytes+window_entries*window_bytes")
        .write("query gradient", "num_tokens*num_heads*qk_dim*w")
        .write("entry gradients (fp32)", "(entries+window_entries)*v_dim*4")
        .write(
            "scattered entry gradients (fp32 atomics)",
            "num_tokens*(selected+window)*v_dim*4",
            level="l2",
            planned=True,
        )
    )
