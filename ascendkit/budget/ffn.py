"""Operators of a layer's feed-forward half, forward: dense, routed and shared experts, Engram."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from ascendkit.budget.call import Call, linear
from ascendkit.budget.plan import Plan
from ascendkit.budget.skew import load
from ascendkit.model import Model, Weight


def dense(
    m: Model, p: Plan, ws: dict[str, Weight], rows: float, label: str, up: str, down: str, tp: int
) -> Iterator[Call]:
    act = m.activation_format
    yield linear(label, ws[up], rows, act, tp=tp)
    yield Call(
        "SwiGLU + quant",
        "tilekernels.swiglu",
        dict(num_tokens=int(rows), hidden=ws[down].k // tp, out=act),
        again=True,
    )
    yield linear(label, ws[down], rows, act, tp=tp, keep="cheap")


def moe(
    m: Model, p: Plan, ws: dict[str, Weight], all_rows: int, scaleup_ranks: int
) -> Iterator[Call]:
    rows = ceil(all_rows / p.tp)
    e, k = m.n_routed_experts, m.num_experts_per_tok
    yield linear("router", ws["router"], rows, d="fp32", keep="shared")
    yield Call(
        "router", "tilekernels.moe_topk_gate", dict(num_tokens=rows, num_experts=e, num_topk=k)
    )
    wire = dict(
        num_tokens=rows,
        hidden=m.hidden_size,
        num_experts=e,
        num_topk=k,
        ep=p.ep,
        scaleup_ranks=scaleup_ranks,
        num_groups=m.n_group,
        topk_groups=m.topk_group,
    )
    yield from (
        c.placed(branch="shared")
        for c in dense(m, p, ws, rows, "shared expert", "shared_gate_up", "shared_down", 1)
    )
    yield from (c.placed(branch="routed") for c in _routed(m, p, ws, all_rows, wire))


def _routed(
    m: Model, p: Plan, ws: dict[str, Weight], all_rows: int, wire: dict[str, Any]
) -> Iterator[Call]:
    """Routed experts; what a rank receives is a mean over senders, so it need not be whole."""
    e, k, act = m.n_routed_experts, m.num_experts_per_tok, m.activation_format
    rows = all_rows / p.tp
    fullest = load(p.routing, e, k, p.ep, max(rows * p.ep, 1.0))
    if fullest.factor != 1:
        wire = {**wire, "skew": fullest.factor}
    yield Call("dispatch", "ep_comm.dispatch", {**wire, "dtype": act})
    mine = rows * k * fullest.factor
    routed = dict(rows=mine, experts=e // p.ep, touched=fullest.touched, a=act, b=m.expert_format)
    up, down = ws["expert_gate_up"], ws["expert_down"]
    yield Call("expert GEMMs", "gemm_mad.grouped", {**routed, "n": up.n, "k": up.k})
    yield Call(
        "SwiGLU + quant",
        "tilekernels.swiglu",
        dict(num_tokens=mine, hidden=down.k, out=act),
        again=True,
    )
    yield Call(
        "expert GEMMs", "gemm_mad.grouped", {**routed, "n": down.n, "k": down.k}, keep="cheap"
    )
    yield Call("combine", "ep_comm.combine", wire)


def engram(m: Model, p: Plan, ws: dict[str, Weight], rows: int) -> Iterator[Call]:
    per_token = m.engram_rows_per_token_per_layer
    yield Call(
        "Engram",
        "tilekernels.engram.hash",
        dict(num_tokens=rows, rows_per_token=per_token, max_ngram=m.engram_max_ngram_size),
    )
    yield Call(
        "Engram",
        "tilekernels.engram.gather",
        dict(num_tokens=rows, rows_per_token=per_token, row_bytes=m.engram_row_bytes, shards=p.ep),
    )
    yield linear("Engram", ws["engram_proj"], rows, m.activation_format)
    yield Call(
        "Engram",
        "tilekernels.engram.gate",
        dict(num_tokens=rows, hidden=m.hidden_size, streams=m.hc_mult),
    )
