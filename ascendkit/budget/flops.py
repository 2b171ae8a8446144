"""Model FLOPs per token in closed form, with the convention said: the numerator of MFU.

Independent of the operator walk: it multiplies parameters, the walk adds operators. Tests hold them
against each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ascendkit.budget.attended import attended
from ascendkit.formats import fmt
from ascendkit.model import Layer, Model, Weight, layer_weights, layers, step_weights
from ascendkit.model.layers import encoder_layers, mtp_layer


@dataclass(frozen=True)
class Convention:
    """What a published FLOP count includes.

    Args:
        router: products with router weights.
        streams: products with mHC projections.
        causal: attention counted over the keys a causal query attends to, half the square for
            dense attention; False counts the full square.
        indexer: logits of the indexer.
    """

    router: bool = False
    streams: bool = False
    causal: bool = True
    indexer: bool = True

    @property
    def text(self) -> str:
        """One line for a report."""
        out = [name for name, on in (("router", self.router), ("mHC", self.streams)) if not on]
        attention = "causal" if self.causal else "non-causal"
        return (
            f"6 x matmul parameters (without {', '.join(out) or 'nothing'}), {attention} attention"
        )


MEGATRON = Convention()
"""Megatron's count, also behind DeepSeek-V3's published MFU: no router, causal attention."""
TORCHTITAN = Convention(router=True, streams=True, causal=False)
"""torchtitan's count: every product, no causal discount."""


def active_params(m: Model, c: Convention, mtp: bool = False, encoder_only: bool = False) -> float:
    """Parameters one token multiplies with; ``encoder_only`` for a prefilled V4.1 token."""
    chosen = layers(m)
    last = encoder_layers(m)
    used = sum(
        _active(layer_weights(m, layer).values(), c)
        for layer in chosen
        if not (encoder_only and layer.index >= last)
    )
    if encoder_only and last < len(chosen):
        ws = layer_weights(m, chosen[last])
        used += sum(ws[n].active for n in ("compressor", "index_k") if n in ws)
    else:
        used += step_weights(m)["head"].active
    if mtp:
        used += _active(layer_weights(m, mtp_layer(m)).values(), c) + step_weights(m)["head"].active
    return used


def total_params(m: Model, mtp: bool = False) -> int:
    """Parameters stored: layers, embedding and head, and with ``mtp`` the prediction layer."""
    found = sum(w.params for layer in layers(m) for w in layer_weights(m, layer).values())
    found += sum(w.params for w in step_weights(m).values())
    if mtp:
        found += sum(w.params for w in layer_weights(m, mtp_layer(m)).values())
    return found


def attention_flops(m: Model, seq: int, c: Convention, mtp: bool = False) -> float:
    """Forward attention FLOPs per token of a training sequence, indexer included."""
    chosen = [*layers(m), *([mtp_layer(m)] if mtp else [])]
    return sum(_attention(m, layer, seq, c) for layer in chosen)


def train_flops(m: Model, seq: int, c: Convention, mtp: bool = False) -> float:
    """Model FLOPs per token, forward and backward: 6 x parameters + 3 x forward attention."""
    return 6 * active_params(m, c, mtp) + 3 * attention_flops(m, seq, c, mtp)


def decode_flops(m: Model, context: int, fp8_equivalent: bool = False) -> float:
    """Forward FLOPs of one decoded token at ``context``: 2 x parameters + attention + indexer.

    With ``fp8_equivalent`` a BF16 FLOP counts twice and an FP4 one half: what it would cost on a
    machine that runs FP8 at twice the BF16 rate and FP4 at twice that.
    """
    weight_of = _fp8_weight if fp8_equivalent else _plain_weight
    total = 0.0
    for layer in layers(m):
        for w in layer_weights(m, layer).values():
            if w.kind != "mHC":
                total += 2 * w.active * weight_of(_rate_class(w.fmt))
        attention, indexer = _decode_attention(m, layer, context)
        total += attention * weight_of("bf16")
        total += indexer * weight_of("fp8" if m.family == "dsa" else "mxfp4")
    head = step_weights(m)["head"]
    return total + 2 * head.active * weight_of(head.fmt)


def _rate_class(fmt_name: str) -> str:
    return "fp8" if fmt(fmt_name).family == "fp4" else fmt(fmt_name).family


def _plain_weight(dtype: str) -> float:
    return 1.0


def _fp8_weight(dtype: str) -> float:
    # FP4 weights meet FP8 activations, so experts run at the FP8 rate; only FP4 x FP4 is faster.
    return {"bf16": 2.0, "mxfp4": 0.5}.get(dtype, 1.0)


def _active(ws: Iterable[Weight], c: Convention) -> float:
    return sum(w.active for w in ws if _counted(w, c))


def _counted(w: Weight, c: Convention) -> bool:
    return (c.router or w.kind != "router") and (c.streams or w.kind != "mHC")


def _attention(m: Model, layer: Layer, seq: int, c: Convention) -> float:
    heads, window = m.num_attention_heads, m.sliding_window
    index = 2 * m.index_n_heads * m.index_head_dim if c.indexer else 0
    if layer.role == "mla":
        per_key = 2 * heads * (m.qk_nope_head_dim + m.qk_rope_head_dim + m.v_head_dim)
        return per_key * seq * (0.5 if c.causal else 1.0)
    ratio = max(layer.ratio, 1)

    def mean(r: int, cap: int | None) -> float:
        if c.causal:
            return attended(seq, seq, r, cap)
        return min(cap, seq // r) if cap is not None else seq // r

    if layer.role == "dsa":
        per_key = 2 * heads * (2 * m.kv_lora_rank + m.qk_rope_head_dim)
        return per_key * mean(1, m.index_topk) + index * mean(1, None)
    keys = mean(1, window)
    if layer.role == "hca":
        keys += mean(ratio, None)
    elif layer.role != "swa":
        keys += mean(ratio, m.index_topk)
    scored = 0.0
    if "index_q" in layer_weights(m, layer):
        most = m.candidate_topk_blocks * m.candidate_block_size
        scored = mean(ratio, most if layer.role == "reindex" else None)
    return 4 * heads * m.head_dim * keys + index * scored


def _decode_attention(m: Model, layer: Layer, context: int) -> tuple[float, float]:
    """FLOPs of attention and of the indexer for one token."""
    index = 2 * m.index_n_heads * m.index_head_dim
    if layer.role in ("mla", "dsa"):
        sparse = layer.role == "dsa"
        keys = min(context, m.index_topk) if sparse else context
        per_key = 2 * m.num_attention_heads * (2 * m.kv_lora_rank + m.qk_rope_head_dim)
        return per_key * keys, index * context if sparse else 0.0
    ratio = max(layer.ratio, 1)
    compressed = context // ratio if layer.role != "swa" else 0
    keys = compressed if layer.role == "hca" else min(compressed, m.index_topk)
    keys += min(context, m.sliding_window)
    scored = 0
    if "index_q" in layer_weights(m, layer):
        most = m.candidate_topk_blocks * m.candidate_block_size
        scored = min(compressed, most) if layer.role == "reindex" else compressed
    return 4 * m.num_attention_heads * m.head_dim * keys, index * scored
