"""One model's configuration, read from the model table; every number keeps its source there.

Field names are those of the published ``config.json`` files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ascendkit.data import resolve, table
from ascendkit.errors import bad_value, unknown
from ascendkit.formats import fmt


@dataclass(frozen=True)
class Model:
    """Configuration of one model; zero or empty where an architecture lacks the part."""

    key: str
    hidden_size: int
    num_hidden_layers: int
    vocab_size: int
    num_attention_heads: int
    n_routed_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    n_shared_experts: int = 1
    first_k_dense_replace: int = 0
    intermediate_size: int = 0
    q_lora_rank: int = 0
    qk_rope_head_dim: int = 64
    # MLA
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    v_head_dim: int = 0
    n_group: int = 1
    topk_group: int = 1
    # shared-KV attention of V4 and later
    head_dim: int = 0
    o_groups: int = 1
    o_lora_rank: int = 0
    sliding_window: int = 0
    compress_ratios: tuple[int, ...] = ()
    # indexer
    index_n_heads: int = 0
    index_head_dim: int = 0
    index_topk: int = 0
    kv_source_layer_ids: tuple[int, ...] = ()
    index_source_layer_ids: tuple[int, ...] = ()
    candidate_source_layer_id: int = -1
    candidate_topk_blocks: int = 0
    candidate_block_size: int = 0
    decoder_prefill_tokens: int = 0
    # hyper-connections and Engram
    hc_mult: int = 0
    hc_sinkhorn_iters: int = 0
    engram_layer_ids: tuple[int, ...] = ()
    engram_num_embeddings: tuple[int, ...] = ()
    engram_max_ngram_size: int = 0
    engram_n_heads: int = 0
    engram_head_dim: int = 0
    engram_rows_per_token_per_layer: int = 0
    engram_row_bytes: int = 0
    # rest
    num_nextn_predict_layers: int = 0
    max_position_embeddings: int = 0
    weight_block_size: tuple[int, ...] = (128, 128)
    expert_dtype: str = "fp8"
    # bytes of one cache record, scales included
    kv_entry_bytes: int = 0
    window_entry_bytes: int = 0
    index_key_bytes: int = 0
    # formats other than the published ones; empty keeps those
    linear: str = ""
    expert: str = ""
    activation: str = ""

    @property
    def family(self) -> str:
        """``mla`` (V3), ``dsa`` (V3.2), ``v4``, or ``v4_1`` (shared compressed KV)."""
        if self.kv_lora_rank:
            return "dsa" if self.index_topk else "mla"
        return "v4_1" if self.kv_source_layer_ids else "v4"

    @property
    def linear_format(self) -> str:
        """Storage of attention and shared-expert weights."""
        if self.linear:
            return self.linear
        return "fp8_32x32" if self.weight_block_size[0] == 32 else "fp8_128x128"

    @property
    def expert_format(self) -> str:
        """Storage of routed-expert weights."""
        if self.expert:
            return self.expert
        return "mxfp4" if self.expert_dtype == "fp4" else self.linear_format

    @property
    def activation_format(self) -> str:
        """Storage of activations that enter a quantised product."""
        if self.activation:
            return self.activation
        return "mxfp8" if self.weight_block_size[0] == 32 else "fp8_1x128"


def models() -> tuple[str, ...]:
    """Keys of all models with a known configuration."""
    rows = table("models")["models"]
    return tuple(k for k, leaves in rows.items() if "hidden_size" in leaves)


def leaf(key: str, name: str) -> Any:
    """Raw value of one leaf of the model table; None where unknown or absent."""
    found = table("models")["models"][key].get(name)
    return None if found is None else found["value"]


def model(name: object) -> Model:
    """A model by key or alias; ValueError naming the nearest, or saying that nothing is known."""
    key = resolve("model", name, tuple(table("models")["models"]))
    if key not in models():
        raise bad_value(
            "model", key, f"a published configuration, one of {', '.join(models())} (unknown here)"
        )
    got: dict[str, Any] = {}
    for f in fields(Model):
        value = leaf(key, f.name)
        if value is not None:
            got[f.name] = tuple(value) if isinstance(value, list) else value
    if isinstance(got.get("compress_ratios"), str):
        got["compress_ratios"] = _expand(got["compress_ratios"])
    return Model(key=key, **got)


def with_formats(m: Model, chosen: Mapping[str, str | None]) -> Model:
    """The same model stored and computed in other formats.

    Args:
        chosen: format names for ``linear``, ``expert`` and ``activation``; None keeps the model's.

    Raises ValueError naming the nearest legal key or format.
    """
    got = {k: v for k, v in chosen.items() if v}
    for name, value in got.items():
        if name not in ("linear", "expert", "activation"):
            raise unknown("format", name, ("linear", "expert", "activation"))
        fmt(value)
    if not got:
        return m
    return replace(
        m, linear=got.get("linear", m.linear), expert=got.get("expert", m.expert),
        activation=got.get("activation", m.activation),
    )  # fmt: skip


def _expand(text: str) -> tuple[int, ...]:
    """``[0,0]+[2]*18+[1]*20 (+ ...)`` as the table writes a run-length list."""
    out: list[int] = []
    for run in text.partition(" (")[0].split("+"):
        values, _, times = run.partition("*")
        out += [int(v) for v in values.strip("[] ").split(",")] * int(times or 1)
    return tuple(out)
