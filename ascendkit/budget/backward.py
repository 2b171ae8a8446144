"""What training adds to the forward pass: backward, loss, optimizer, and data-parallel traffic."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ascendkit.budget.call import Call
from ascendkit.budget.params import most_params
from ascendkit.budget.plan import Plan
from ascendkit.model import Model
from ascendkit.registry import op

_MIRROR = {
    "ep_comm.dispatch": "ep_comm.combine",
    "ep_comm.combine": "ep_comm.dispatch",
    "ep_comm.all_gather": "ep_comm.reduce_scatter",
}
"""The backward of sending tokens out is bringing gradients back, and the reverse."""
_REPEATED = ("ep_comm.all_reduce", "ep_comm.send_recv", "tilekernels.per_token_cast")
"""Their backward moves the same bytes the other way, or casts the gradient instead."""


def backward(calls: list[Call], recompute: str) -> list[Call]:
    """Backward calls of the forward ``calls``, last first, and what is computed again before."""
    again = [c for c in calls if recompute == "full" or (recompute == "selective" and c.again)]
    repeated = [replace(c, label="recompute", part="backward") for c in again]
    return repeated + [replace(b, part="backward") for c in reversed(calls) for b in _backward(c)]


def _backward(c: Call) -> Iterator[Call]:
    q = dict(c.params)
    if c.op == "gemm_mad.gemm":
        wide = q["a"]
        yield replace(c, params={**q, "n": q["k"], "k": q["n"], "a": wide, "d": "bf16"})
        yield replace(
            c,
            params=dict(
                m=q["n"],
                n=q["k"],
                k=q["m"],
                batch=q["batch"],
                a=wide,
                b=wide,
                d="fp32",
                accumulate=True,
            ),
        )
        if wide != "bf16":
            cast = dict(num_tokens=q["m"] * q["batch"], hidden=q["n"], out=wide, transpose=True)
            yield replace(
                c, label="FP8 casts of gradients", op="tilekernels.per_token_cast", params=cast
            )
    elif c.op == "gemm_mad.grouped":
        yield replace(c, params={**q, "n": q["k"], "k": q["n"]})
        yield replace(c, params={**q, "b": q["a"], "d": "fp32", "wgrad": True})
        cast = dict(num_tokens=q["rows"], hidden=q["n"], out=q["a"], transpose=True)
        yield replace(
            c, label="FP8 casts of gradients", op="tilekernels.per_token_cast", params=cast
        )
    elif c.op in _MIRROR:
        yield replace(c, op=_MIRROR[c.op], params={**q, "dtype": "bf16"})
    elif c.op in _REPEATED:
        yield c
    elif _differentiable(c.op):
        yield replace(c, params={**q, "backward": True})


@lru_cache(maxsize=256)
def _differentiable(name: str) -> bool:
    return "backward" in inspect.signature(op(name).load("cost").cost).parameters


def loss(m: Model, p: Plan) -> list[Call]:
    """Cross-entropy of every head of one micro-batch."""
    heads = 1 + p.mtp
    params = dict(num_tokens=p.tokens, vocab=-(-m.vocab_size // p.tp))
    return [Call("loss", "tilekernels.cross_entropy", params, heads / p.pp)]


def update(m: Model, p: Plan, scaleup_ranks: int) -> list[Call]:
    """Once a step: gradients reduced, AdamW on this rank's share, weights gathered again."""
    calls = []
    for name, params, replicas in most_params(m, p):
        shard = replicas if p.zero else 1
        calls.append(
            Call("optimizer", "tilekernels.adamw", dict(num_params=params / shard), role=name)
        )
        if replicas > 1:
            ring = dict(num_values=params, ranks=replicas, scaleup_ranks=_reach(p, scaleup_ranks))
            if p.zero:
                calls += [
                    Call("gradient reduce-scatter", "ep_comm.reduce_scatter", ring, role=name),
                    Call("weight all-gather", "ep_comm.all_gather", ring, role=name),
                ]
            else:
                calls.append(Call("gradient all-reduce", "ep_comm.all_reduce", ring, role=name))
    return [replace(c, part="optimizer") for c in calls]


def _reach(p: Plan, scaleup_ranks: int) -> int:
    """Data-parallel peers inside one domain; a ring that leaves it is bound by the network."""
    return scaleup_ranks if p.ranks <= scaleup_ranks else 1
