"""Cache bytes of a sequence, by layer role: compressed entries, index keys, windows."""

from __future__ import annotations

from ascendkit.model import Layer, Model, layers
from ascendkit.model.layers import mtp_layer


def kv_bytes(
    m: Model, index_key_bytes: int | None = None, mtp: bool = False
) -> tuple[float, float]:
    """Cache bytes of one sequence over all layers: per token of context, and fixed (windows).

    With ``mtp`` the prediction layer's own cache is counted too.
    """
    found = [*layers(m), *((mtp_layer(m),) if mtp else ())]
    each = [layer_kv(m, layer, index_key_bytes) for layer in found]
    return sum(t for t, _ in each), sum(f for _, f in each)


def layer_kv(m: Model, layer: Layer, index_key_bytes: int | None = None) -> tuple[float, float]:
    """Cache bytes that one layer writes for a sequence: per token of context, and its window."""
    index = m.index_key_bytes if index_key_bytes is None else index_key_bytes
    if layer.role in ("mla", "dsa"):
        return m.kv_entry_bytes + (index if layer.role == "dsa" else 0.0), 0.0
    per_token = 0.0
    if layer.role in ("csa", "full", "candidate"):
        per_token = (m.kv_entry_bytes + index) / layer.ratio
    elif layer.role == "hca":
        per_token = m.kv_entry_bytes / layer.ratio
    return per_token, float(m.sliding_window * m.window_entry_bytes)
