"""Operators of one forward pass on one rank: layers by role, then what surrounds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ascendkit.budget.attention import attention
from ascendkit.budget.call import Call, linear
from ascendkit.budget.ffn import dense, engram, moe
from ascendkit.budget.indexing import index_cache
from ascendkit.budget.plan import Plan
from ascendkit.model import Layer, Model, layer_weights, layers, step_weights
from ascendkit.model.layers import encoder_layers, mtp_layer


@dataclass(frozen=True)
class Segment:
    """Calls that run ``times`` times in one pass: a kind of layer, or what surrounds the layers.

    Args:
        name: ``layer <role>``, ``embedding``, ``head``, ``source``, ``draft`` or ``pipeline``.
        calls: one run of it, in order.
        times: runs in a pass through all pipeline stages.
        at: indices of the layers it stands for.
    """

    name: str
    calls: tuple[Call, ...]
    times: float
    at: tuple[int, ...] = ()


def forward(m: Model, p: Plan, scaleup_ranks: int) -> list[Call]:
    """Calls of one pass (one micro-batch in training), equal layers merged into one call."""
    return merged(segments(m, p, scaleup_ranks), p)


def merged(found: Iterable[Segment], p: Plan) -> list[Call]:
    """Calls of the segments with their counts in one pass, a mean over pipeline ranks."""
    return [c.placed(count=c.count * s.times / p.pp) for s in found for c in s.calls]


def segments(m: Model, p: Plan, scaleup_ranks: int) -> list[Segment]:
    """The same pass, in the order it runs."""
    found = []
    for (layer, rows), at in _grouped(m, p).items():
        calls = (c.placed(role=layer.role) for c in _layer(m, layer, p, rows, scaleup_ranks))
        found.append(Segment(f"layer {layer.role}", tuple(calls), len(at), tuple(at)))
    found += [
        Segment("embedding", tuple(_entry(m, p)), 1),
        Segment("head", tuple(_exit(m, p)), 1),
        Segment("source", tuple(_truncated_source(m, p)), 1),
    ]
    if p.mtp:
        passes = p.mtp if p.phase == "decode" else 1
        drafted = replace(p, seq=1) if p.phase == "decode" else p
        calls = (c.placed(role="mtp") for c in _mtp(m, drafted, scaleup_ranks))
        found.append(Segment("draft", tuple(calls), passes))
    if p.pp > 1:
        width = m.hidden_size * max(m.hc_mult, 1)
        link = "scaleup" if p.ranks <= scaleup_ranks else "scaleout"
        params = dict(num_values=p.tokens * width / p.tp, link=link)
        send = Call("pipeline send", "ep_comm.send_recv", params)
        found.append(Segment("pipeline", (send,), p.pp - 1))
    return [s for s in found if s.calls]


def _grouped(m: Model, p: Plan) -> dict[tuple[Layer, int], list[int]]:
    """Layers that cost the same, with the tokens that reach them, and which they are."""
    encoder = encoder_layers(m)
    found: dict[tuple[Layer, int], list[int]] = {}
    for layer in layers(m):
        rows = p.tokens
        if p.phase == "prefill" and layer.index >= encoder and m.decoder_prefill_tokens:
            rows = -(-p.batch * min(p.seq, m.decoder_prefill_tokens) // p.cp)
        # Engram tables differ in size only; the index is dropped so that equal layers merge.
        index = layer.index if layer.engram else -1
        found.setdefault((replace(layer, index=index), rows), []).append(layer.index)
    return found


def _layer(m: Model, layer: Layer, p: Plan, rows: int, scaleup_ranks: int) -> Iterator[Call]:
    ws = layer_weights(m, layer)
    if layer.engram:
        yield from engram(m, p, ws, rows)
    yield from _enter(m, rows)
    yield from attention(m, layer, ws, p, rows, scaleup_ranks)
    yield from _reduced(m, p, rows, scaleup_ranks)
    yield from _leave(m, rows)
    yield from _enter(m, rows)
    if layer.dense_ffn:
        yield from dense(m, p, ws, rows, "dense FFN", "gate_up", "down", p.tp)
        yield from _reduced(m, p, rows, scaleup_ranks)
    else:
        yield from moe(m, p, ws, rows, scaleup_ranks)
    yield from _leave(m, rows)


def _enter(m: Model, rows: int) -> Iterator[Call]:
    """Streams to the layer's input, then norm and quantisation."""
    if m.hc_mult:
        yield Call(
            "mHC",
            "tilekernels.mhc.pre",
            dict(
                num_tokens=rows,
                hidden=m.hidden_size,
                streams=m.hc_mult,
                sinkhorn_iters=m.hc_sinkhorn_iters,
                fused_post=m.family == "v4_1",
            ),
            keep="cheap",
            again=True,
        )
    yield Call(
        "norm + quant",
        "tilekernels.norm",
        dict(num_tokens=rows, hidden=m.hidden_size, out=m.activation_format),
        again=True,
    )


def _leave(m: Model, rows: int) -> Iterator[Call]:
    if m.hc_mult and m.family != "v4_1":
        yield Call(
            "mHC",
            "tilekernels.mhc.post",
            dict(num_tokens=rows, hidden=m.hidden_size, streams=m.hc_mult),
            keep="cheap",
            again=True,
        )


def _reduced(m: Model, p: Plan, rows: int, scaleup_ranks: int) -> Iterator[Call]:
    if p.tp > 1:
        yield Call(
            "tensor-parallel all-reduce",
            "ep_comm.all_reduce",
            dict(num_values=rows * m.hidden_size, ranks=p.tp, scaleup_ranks=scaleup_ranks),
        )


def _entry(m: Model, p: Plan) -> Iterator[Call]:
    """Embedding of the tokens, and the streams it opens."""
    h = m.hidden_size
    yield Call("embedding", "tilekernels.embedding", dict(num_tokens=p.tokens, hidden=h))
    if m.hc_mult:
        yield Call(
            "mHC", "tilekernels.mhc.expand", dict(num_tokens=p.tokens, hidden=h, streams=m.hc_mult)
        )


def _exit(m: Model, p: Plan) -> Iterator[Call]:
    """Final norm and head; prefill needs logits of the last token only."""
    rows = p.batch if p.phase == "prefill" else p.tokens
    h = m.hidden_size
    if m.hc_mult:
        yield Call(
            "mHC", "tilekernels.mhc.head", dict(num_tokens=rows, hidden=h, streams=m.hc_mult)
        )
    yield Call("norm + quant", "tilekernels.norm", dict(num_tokens=rows, hidden=h), again=True)
    yield _head(m, p, rows)


def _head(m: Model, p: Plan, rows: int) -> Call:
    wide = "bf16" if p.phase == "train" else "fp32"
    return linear("LM head", step_weights(m)["head"], rows, d=wide, tp=p.tp)


def _truncated_source(m: Model, p: Plan) -> list[Call]:
    """KV and index keys of the first decoder layer, computed for every prefilled token (V4.1)."""
    if p.phase != "prefill" or not m.decoder_prefill_tokens or p.seq <= m.decoder_prefill_tokens:
        return []
    source = layers(m)[encoder_layers(m)]
    rows = p.tokens - p.batch * m.decoder_prefill_tokens // p.cp
    entry_bytes = m.kv_entry_bytes + m.index_key_bytes
    ws = layer_weights(m, source)
    return [c.placed(role=source.role) for c in index_cache(m, source, ws, rows, entry_bytes)]


def _mtp(m: Model, p: Plan, scaleup_ranks: int) -> Iterator[Call]:
    """One multi-token-prediction layer: merge with the next embedding, a layer, the shared head."""
    layer = mtp_layer(m)
    yield Call(
        "embedding", "tilekernels.embedding", dict(num_tokens=p.tokens, hidden=m.hidden_size)
    )
    yield linear("MTP merge", layer_weights(m, layer)["eh_proj"], p.tokens, m.activation_format)
    yield from _layer(m, layer, p, p.tokens, scaleup_ranks)
    yield _head(m, p, p.tokens)
