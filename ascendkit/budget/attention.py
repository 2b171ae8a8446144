"""Operators of a layer's attention half, forward, by role."""

from __future__ import annotations

from collections.abc import Iterator

from ascendkit.budget.attended import attended
from ascendkit.budget.call import Call, linear
from ascendkit.budget.indexing import index_cache, index_queries, select
from ascendkit.budget.kv import layer_kv
from ascendkit.budget.plan import Plan
from ascendkit.model import Layer, Model, Weight


def attention(
    m: Model, layer: Layer, ws: dict[str, Weight], p: Plan, rows: int, scaleup_ranks: int
) -> Iterator[Call]:
    """Calls of one layer for ``rows`` new tokens (fewer than the plan's in a truncated decoder)."""
    act, seq, tp = m.activation_format, rows * p.cp // p.batch, p.tp
    heads = m.num_attention_heads // tp
    yield linear("q_a + kv", ws["qkv_a"], rows, act)
    rope = dict(num_tokens=rows, num_heads=heads, rope_dim=m.qk_rope_head_dim)
    normed = dict(num_tokens=rows, hidden=m.q_lora_rank, out=act)
    yield from _branch(
        "q",
        Call("norms, RoPE, cache write", "tilekernels.norm", normed, again=True),
        linear("q_b", ws["q_b"], rows, act, tp=tp, again=True),
        Call("norms, RoPE, cache write", "tilekernels.rope", rope, again=True),
    )
    if m.family in ("mla", "dsa"):
        yield from _mla(m, ws, p, rows, seq, heads)
        width = heads * m.v_head_dim
    else:
        yield from _shared_kv(m, layer, ws, p, rows, seq, heads)
        width = heads * m.head_dim
    yield Call(
        "cast of attention output",
        "tilekernels.per_token_cast",
        dict(num_tokens=rows, hidden=width, out=act),
    )
    if p.cp > 1:
        yield from _shared_cache(m, layer, p, scaleup_ranks)
    for name, label in (("o_a", "W_o_a"), ("o_b", "W_o_b"), ("o", "W_o")):
        if name in ws:
            yield linear(label, ws[name], rows, act, tp=tp)


def _shared_cache(m: Model, layer: Layer, p: Plan, scaleup_ranks: int) -> Iterator[Call]:
    """Cache entries that context-parallel ranks need of each other: those this layer just wrote.

    Compressed entries go to everyone; of a window, the tail goes to the next rank.
    """
    per_token, window = layer_kv(m, layer)
    if per_token:
        gathered = dict(num_values=p.batch * p.seq * per_token / 2, ranks=p.cp)
        params = {**gathered, "scaleup_ranks": scaleup_ranks}
        yield Call("context-parallel all-gather", "ep_comm.all_gather", params)
    if window:
        tail = window * min(p.seq // p.cp / m.sliding_window, 1)
        link = "scaleup" if p.cp * p.tp <= scaleup_ranks else "scaleout"
        values = p.batch * tail / 2
        sent = dict(num_values=values, link=link)
        yield Call("context-parallel window", "ep_comm.send_recv", sent)


def _branch(name: str, *calls: Call) -> Iterator[Call]:
    """Calls that may run beside those of other branches."""
    return (c.placed(branch=name) for c in calls)


def _cache_write(rows: int, hidden: int, entry_bytes: int) -> Call:
    params = dict(num_tokens=rows, hidden=hidden, entry_bytes=entry_bytes)
    return Call("norms, RoPE, cache write", "sparse_attn.kv_cache", params)


def _mla(
    m: Model, ws: dict[str, Weight], p: Plan, rows: int, seq: int, heads: int
) -> Iterator[Call]:
    nope, v, kv = m.qk_nope_head_dim, m.v_head_dim, m.kv_lora_rank
    latent = kv + m.qk_rope_head_dim
    yield from _branch("kv", _cache_write(rows, latent, m.kv_entry_bytes))
    absorbed = m.family == "dsa" or p.phase == "decode"
    if absorbed:
        # W_uk moves to the query side, W_uv to the output: one small product a head.
        fmt = ws["kv_b"].fmt
        yield Call(
            "absorbed kv_b",
            "gemm_mad.gemm",
            dict(m=rows, n=kv, k=nope, batch=heads, a="bf16", b=fmt, d="bf16"),
        )
        yield Call(
            "absorbed kv_b",
            "gemm_mad.gemm",
            dict(m=rows, n=v, k=kv, batch=heads, a="bf16", b=fmt, d="bf16"),
        )
    else:
        yield linear(
            "kv_b", ws["kv_b"], p.batch * p.context, m.activation_format, tp=p.tp, again=True
        )
    if m.family == "mla":
        qk, vd = (latent, kv) if absorbed else (nope + m.qk_rope_head_dim, v)
        entry = m.kv_entry_bytes if absorbed else heads * (qk + vd) * 2
        yield Call(
            "attention",
            "sparse_attn.mla",
            dict(
                num_tokens=rows,
                num_heads=heads,
                qk_dim=qk,
                v_dim=vd,
                kv_len=attended(p.context, seq),
                kv_entries=p.batch * p.context,
                entry_bytes=entry,
                cached=absorbed,
            ),
            keep="cheap",
        )
        return
    yield from _branch(
        "index",
        *index_queries(m, ws, p, rows),
        linear("index K", ws["index_k"], rows, m.activation_format, keep="shared"),
        *select(m, p, rows, attended(p.context, seq), p.context),
    )
    yield _sparse(
        m,
        p,
        rows,
        heads,
        qk=latent,
        v=kv,
        selected=attended(p.context, seq, cap=m.index_topk),
        window=0.0,
        entries=p.batch * p.context,
    )


def _shared_kv(
    m: Model, layer: Layer, ws: dict[str, Weight], p: Plan, rows: int, seq: int, heads: int
) -> Iterator[Call]:
    yield from _branch("kv", _cache_write(rows, m.head_dim, m.window_entry_bytes))
    ratio, role = layer.ratio, layer.role
    indexed = role not in ("swa", "hca")
    entry_bytes = m.kv_entry_bytes + (m.index_key_bytes if indexed else 0)
    yield from _branch("kv", *index_cache(m, layer, ws, rows, entry_bytes))
    selected = 0.0
    if indexed:
        selected = attended(p.context, seq, ratio, m.index_topk)
    elif role == "hca":
        selected = attended(p.context, seq, ratio)
    if "index_q" in ws:
        yield from _branch("index", *index_queries(m, ws, p, rows))
        keys, entries = attended(p.context, seq, ratio), p.context / ratio
        if role == "reindex":
            most = m.candidate_topk_blocks * m.candidate_block_size
            keys, entries = attended(p.context, seq, ratio, most), min(entries, most)
        yield from _branch("index", *select(m, p, rows, keys, entries))
        if role == "candidate":
            blocks = keys / m.candidate_block_size
            chosen = dict(rows=rows, row_len=blocks, num_topk=m.candidate_topk_blocks)
            yield from _branch("index", Call("top-k", "topk.radix_select", chosen))
    yield _sparse(
        m,
        p,
        rows,
        heads,
        qk=m.head_dim,
        v=m.head_dim,
        selected=selected,
        window=attended(p.context, seq, cap=m.sliding_window),
        entries=p.batch * p.context / max(ratio, 1) if selected else 0.0,
    )


def _sparse(
    m: Model,
    p: Plan,
    rows: int,
    heads: int,
    qk: int,
    v: int,
    selected: float,
    window: float,
    entries: float,
) -> Call:
    names = dict(
        num_tokens=rows,
        num_heads=heads,
        qk_dim=qk,
        v_dim=v,
        selected=selected,
        window=window,
        entry_bytes=m.kv_entry_bytes,
        window_bytes=m.window_entry_bytes,
    )
    if p.phase == "decode":
        return Call("attention", "sparse_attn.decode", names)
    names |= dict(
        entries=entries,
        window_entries=p.batch * min(p.context, rows * p.cp // p.batch + m.sliding_window)
        if window
        else 0,
    )
    return Call("attention", "sparse_attn.prefill", names, keep="cheap")
