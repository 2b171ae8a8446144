"""Cost of sparse attention in decode: every query gathers its own entries."""

from sparse_attn.counting import selected_attention


def cost(num_tokens, num_heads, qk_dim, v_dim, selected, window, entry_bytes, window_bytes):
    """FLOPs and bytes.

    Args:
        num_tokens, num_heads, qk_dim, v_dim: queries; 512/512 for V4, 576/512 for absorbed MLA.
        selected: compressed entries a query attends to (top-k), on average.
        window: sliding-window entries, on average.
        entry_bytes, window_bytes: bytes of one entry of each kind.
    """
    return selected_attention(locals(), "num_tokens*(selected*entry_bytes+window*window_bytes)")
