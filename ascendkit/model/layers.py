"""What each layer of a model is: its attention role, its compression, its FFN.

=============  ====================================================================================
role           attention
=============  ====================================================================================
``mla``        dense MLA over the whole context (V3)
``dsa``        MLA over the top-k of the indexer (V3.2)
``swa``        sliding window only
``csa``        window plus the top-k of its own compressed KV (V4, ratio 4)
``hca``        window plus all of its own heavily compressed KV (V4, ratio 128)
``full``       window plus top-k; owns compressed KV and index (V4.1)
``candidate``  as full, and picks candidate blocks for the layers after it (V4.1)
``reindex``    scores only the candidates with its own index queries (V4.1)
``reuse``      takes the last index and the last compressed KV (V4.1)
=============  ====================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

from ascendkit.model.config import Model


@dataclass(frozen=True)
class Layer:
    """Role of one layer. ``mtp`` marks a multi-token-prediction layer after the last one."""

    index: int
    role: str
    ratio: int = 0
    dense_ffn: bool = False
    engram: bool = False
    mtp: bool = False


def layers(m: Model) -> tuple[Layer, ...]:
    """All layers of the main model, in order."""
    return tuple(
        Layer(
            i,
            _role(m, i),
            _ratio(m, i),
            dense_ffn=i < m.first_k_dense_replace,
            engram=i in m.engram_layer_ids,
        )
        for i in range(m.num_hidden_layers)
    )


def mtp_layer(m: Model) -> Layer:
    """The first multi-token-prediction layer: dense attention for MLA, window only for V4."""
    role = m.family if m.family in ("mla", "dsa") else "swa"
    return Layer(m.num_hidden_layers, role, mtp=True)


def encoder_layers(m: Model) -> int:
    """Layers every prefilled token runs through; the rest see only the last few (V4.1)."""
    if m.family != "v4_1" or m.candidate_source_layer_id < 0:
        return m.num_hidden_layers
    return m.candidate_source_layer_id


def _ratio(m: Model, i: int) -> int:
    return m.compress_ratios[i] if i < len(m.compress_ratios) else 0


def _role(m: Model, i: int) -> str:
    if m.family in ("mla", "dsa"):
        return m.family
    ratio = _ratio(m, i)
    if ratio == 0:
        return "swa"
    if m.family == "v4":
        return "csa" if ratio == 4 else "hca"
    if i == m.candidate_source_layer_id:
        return "candidate"
    if i in m.kv_source_layer_ids:
        return "full"
    return "reindex" if i in m.index_source_layer_ids else "reuse"
