"""Operators of compressed caches and of the lightning indexer."""

from __future__ import annotations

from collections.abc import Iterator

from ascendkit.budget.call import Call, linear
from ascendkit.budget.plan import Plan
from ascendkit.model import Layer, Model, Weight

INDEX_FORMAT = {"dsa": "fp8_1x128", "v4": "mxfp4", "v4_1": "mxfp4"}
"""Format of index queries and keys by model family."""


def index_cache(
    m: Model, layer: Layer, ws: dict[str, Weight], rows: int, entry_bytes: int
) -> Iterator[Call]:
    """Compressed KV and index keys that ``rows`` tokens add to the cache of a KV source layer."""
    if "compressor" in ws:
        yield linear("compressor", ws["compressor"], rows, d="fp32", keep="shared")
    if "index_compressor" in ws:
        yield linear("compressor", ws["index_compressor"], rows, d="fp32", keep="shared")
    wide = sum(ws[n].n for n in ("compressor", "index_compressor") if n in ws)
    if wide:
        params = dict(num_tokens=rows, width=wide, ratio=layer.ratio, entry_bytes=entry_bytes)
        yield Call("compressor", "sparse_attn.compressor", params)
    if "index_k" in ws and m.family == "v4_1":
        yield linear("index K", ws["index_k"], max(rows // layer.ratio, 1))


def index_queries(m: Model, ws: dict[str, Weight], p: Plan, rows: int) -> Iterator[Call]:
    yield linear("index Q, weights", ws["index_q"], rows, m.activation_format, keep="shared")
    yield linear("index Q, weights", ws["index_weights"], rows, d="fp32", keep="shared")


def select(m: Model, p: Plan, rows: int, keys: float, context_keys: float) -> Iterator[Call]:
    yield Call(
        "indexer logits",
        "sparse_attn.indexer",
        dict(
            num_tokens=rows,
            num_heads=m.index_n_heads,
            head_dim=m.index_head_dim,
            keys=keys,
            key_entries=p.batch * context_keys,
            key_bytes=m.index_key_bytes,
            dtype=INDEX_FORMAT[m.family],
        ),
    )
    yield Call("top-k", "topk.radix_select", dict(rows=rows, row_len=keys, num_topk=m.index_topk))
