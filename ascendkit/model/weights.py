"""Every weight matrix of a model, once: parameters, memory and FLOPs all derive from this list.

Norm weights, biases and attention sinks are left out (0.001 % of a model).
"""

from __future__ import annotations

from dataclasses import dataclass

from ascendkit.formats import width
from ascendkit.model.config import Model
from ascendkit.model.layers import Layer


@dataclass(frozen=True)
class Weight:
    """``batch`` matrices that map ``k`` values to ``n``.

    Args:
        kind: what the memory table books it under.
        shard: what ranks split: ``n``, ``k`` or ``batch`` by tensor parallelism, ``ep`` by expert
            parallelism, nothing where it is replicated.
        used: share of the matrices a token multiplies with (k/E for routed experts, 0 for tables).
    """

    name: str
    k: int
    n: int
    fmt: str
    kind: str
    batch: int = 1
    shard: str = ""
    used: float = 1.0

    @property
    def params(self) -> int:
        """Parameters of all matrices."""
        return self.batch * self.k * self.n

    @property
    def active(self) -> float:
        """Parameters one token multiplies with."""
        return self.params * self.used

    @property
    def bytes(self) -> float:
        """Stored bytes, scales included."""
        return self.params * width(self.fmt)


def layer_weights(m: Model, layer: Layer) -> dict[str, Weight]:
    """Weights of one layer, by name."""
    found = [*_attention(m, layer), *_index(m, layer), *_ffn(m, layer), *_streams(m, layer)]
    if layer.mtp:
        found.append(Weight("eh_proj", 2 * m.hidden_size, m.hidden_size, m.linear_format, "mtp"))
    return {w.name: w for w in found}


def step_weights(m: Model) -> dict[str, Weight]:
    """Weights outside the layers: embedding and head."""
    embedding = Weight(
        "embedding", m.vocab_size, m.hidden_size, "bf16", "embedding", shard="k", used=0.0
    )
    head = Weight("head", m.hidden_size, m.vocab_size, "bf16", "head", shard="n")
    return {"embedding": embedding, "head": head}


def _attention(m: Model, layer: Layer) -> list[Weight]:
    f, h, heads, q = m.linear_format, m.hidden_size, m.num_attention_heads, m.q_lora_rank
    if layer.role in ("mla", "dsa"):
        kv, nope, rope, v = m.kv_lora_rank, m.qk_nope_head_dim, m.qk_rope_head_dim, m.v_head_dim
        return [
            Weight("qkv_a", h, q + kv + rope, f, "attention"),
            Weight("q_b", q, heads * (nope + rope), f, "attention", shard="n"),
            Weight("kv_b", kv, heads * (nope + v), f, "attention", shard="n"),
            Weight("o", heads * v, h, f, "attention", shard="k"),
        ]
    d = m.head_dim
    return [
        Weight("qkv_a", h, q + d, f, "attention"),
        Weight("q_b", q, heads * d, f, "attention", shard="n"),
        Weight(
            "o_a", heads * d // m.o_groups, m.o_lora_rank, f, "attention", m.o_groups, shard="batch"
        ),
        Weight("o_b", m.o_groups * m.o_lora_rank, h, f, "attention", shard="k"),
    ]


def _index(m: Model, layer: Layer) -> list[Weight]:
    h, q, heads, dim = m.hidden_size, m.q_lora_rank, m.index_n_heads, m.index_head_dim
    f = m.linear_format
    queries = [
        Weight("index_q", q, heads * dim, f, "indexer"),
        Weight("index_weights", h, heads, "bf16", "indexer"),
    ]
    if layer.role == "dsa":
        return [*queries, Weight("index_k", h, dim, f, "indexer")]
    if layer.role == "csa":
        return [
            *queries,
            # Values and gates of two overlapping windows each.
            Weight("compressor", h, 4 * m.head_dim, "bf16", "compressor"),
            Weight("index_compressor", h, 4 * dim, "bf16", "indexer"),
        ]
    if layer.role == "hca":
        return [Weight("compressor", h, 2 * m.head_dim, "bf16", "compressor")]
    if layer.role in ("full", "candidate"):
        # Ratio 1 has nothing to pool, so it has no gates.
        wide = m.head_dim if layer.ratio == 1 else 2 * m.head_dim
        return [
            *queries,
            Weight("compressor", h, wide, "bf16", "compressor"),
            # One key a compressed entry, so one product every `ratio` tokens.
            Weight("index_k", m.head_dim, dim, "bf16", "indexer", used=1 / layer.ratio),
        ]
    return queries if layer.role == "reindex" else []


def _ffn(m: Model, layer: Layer) -> list[Weight]:
    h, f = m.hidden_size, m.linear_format
    if layer.dense_ffn:
        i = m.intermediate_size
        return [
            Weight("gate_up", h, 2 * i, f, "dense FFN", shard="n"),
            Weight("down", i, h, f, "dense FFN", shard="k"),
        ]
    e, i, shared = m.n_routed_experts, m.moe_intermediate_size, m.n_shared_experts
    used = m.num_experts_per_tok / e
    return [
        Weight("router", h, e, "bf16", "router"),
        Weight("expert_gate_up", h, 2 * i, m.expert_format, "experts", e, "ep", used),
        Weight("expert_down", i, h, m.expert_format, "experts", e, "ep", used),
        Weight("shared_gate_up", h, 2 * i * shared, f, "shared expert"),
        Weight("shared_down", i * shared, h, f, "shared expert"),
    ]


def _streams(m: Model, layer: Layer) -> list[Weight]:
    found = []
    if m.hc_mult:
        n = m.hc_mult
        found.append(Weight("hc_fn", n * m.hidden_size, n * n + 2 * n, "fp32", "mHC", batch=2))
    if layer.engram:
        table = m.engram_num_embeddings[m.engram_layer_ids.index(layer.index)]
        flat = m.engram_rows_per_token_per_layer * m.engram_head_dim
        out = (m.hc_mult + 1) * m.hidden_size
        found += [
            Weight("engram_table", table, m.engram_head_dim, "fp8", "Engram", shard="ep", used=0.0),
            Weight("engram_proj", flat, out, m.linear_format, "Engram"),
        ]
    return found
