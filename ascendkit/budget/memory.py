"""Device memory of the fullest rank, by kind, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ascendkit.budget.call import Call
from ascendkit.budget.plan import Plan
from ascendkit.budget.skew import load
from ascendkit.formats import width
from ascendkit.model import Layer, Model, Weight, layer_weights, layers, step_weights
from ascendkit.model.layers import mtp_layer

GRADIENT_BYTES = 4
OPTIMIZER_BYTES = 12
"""fp32 gradients; fp32 master weights and both AdamW moments."""


@dataclass(frozen=True)
class Memory:
    """Bytes on one rank. ``kv_per_token`` and ``kv_fixed`` are of one sequence, all layers."""

    weights: dict[str, float]
    gradients: float
    optimizer: float
    activations: dict[str, float]
    kv_per_token: float
    kv_fixed: float
    kv_cache: float
    ep_buffer: float

    @property
    def buffers(self) -> dict[str, float]:
        """Everything that is neither weight, gradient nor optimizer state, by name."""
        found = {f"activations: {k}": v for k, v in self.activations.items() if v}
        found |= {"KV cache": self.kv_cache, "expert-parallel buffers": self.ep_buffer}
        return {k: v for k, v in found.items() if v}

    @property
    def total(self) -> float:
        """All kinds together."""
        kept = self.gradients + self.optimizer + sum(self.buffers.values())
        return sum(self.weights.values()) + kept


def memory(m: Model, p: Plan, calls: list[Call]) -> Memory:
    """Memory of the fullest pipeline stage. ``calls`` are the forward calls of one pass."""
    train = p.phase == "train"
    gradients = optimizer = 0.0
    if train:
        for _, params, replicas in local_params(m, p):
            gradients += params * GRADIENT_BYTES
            optimizer += params * OPTIMIZER_BYTES / (replicas if p.zero else 1)
    per_token, fixed = kv_bytes(m)
    held = 0.0 if train else p.batch * (per_token * p.context / p.cp + fixed) / p.pp
    return Memory(
        weights=_weights(m, p),
        gradients=gradients,
        optimizer=optimizer,
        activations=_activations(m, p, calls),
        kv_per_token=per_token,
        kv_fixed=fixed,
        kv_cache=held,
        ep_buffer=_ep_buffer(m, p),
    )


def _ep_buffer(m: Model, p: Plan) -> float:
    """Receive buffers of dispatch (every rank may send all its tokens) and of combine (BF16).

    Sized for the largest pass: in decode every rank keeps room for all others, in prefill and
    training for the rows the fullest rank is expected to receive.
    """
    if p.ep == 1:
        return 0.0
    rows = p.moe_tokens * m.num_experts_per_tok
    if p.phase == "decode":
        rows = p.moe_tokens * min(p.ep, m.n_routed_experts)
    else:
        rows *= load(
            p.routing, m.n_routed_experts, m.num_experts_per_tok, p.ep, p.moe_tokens * p.ep
        ).factor
    return p.interleave * rows * m.hidden_size * (width(m.activation_format) + width("bf16"))


def kv_bytes(m: Model, index_key_bytes: int | None = None) -> tuple[float, float]:
    """Cache bytes of one sequence over all layers: per token of context, and fixed (windows)."""
    index = m.index_key_bytes if index_key_bytes is None else index_key_bytes
    per_token = fixed = 0.0
    for layer in layers(m):
        if layer.role in ("mla", "dsa"):
            per_token += m.kv_entry_bytes + (index if layer.role == "dsa" else 0)
            continue
        fixed += m.sliding_window * m.window_entry_bytes
        if layer.role in ("csa", "full", "candidate"):
            per_token += (m.kv_entry_bytes + index) / layer.ratio
        elif layer.role == "hca":
            per_token += m.kv_entry_bytes / layer.ratio
    return per_token, fixed


def local_params(m: Model, p: Plan) -> list[tuple[str, float, int]]:
    """Trained parameters of one rank: (group, parameters, replicas that hold the same ones)."""
    dense = experts = 0.0
    for w in _all_weights(m, p):
        if w.shard == "ep":
            experts += w.params / p.ep
        else:
            dense += w.params / (p.tp if w.shard else 1)
    return [
        ("dense", dense / p.pp, p.dp),
        ("expert", experts / p.pp, max(p.dp * p.tp // p.ep, 1)),
    ]


def _all_weights(m: Model, p: Plan) -> Iterator[Weight]:
    for layer in _counted_layers(m, p):
        yield from layer_weights(m, layer).values()
    yield from step_weights(m).values()


def _counted_layers(m: Model, p: Plan) -> tuple[Layer, ...]:
    return (*layers(m), *((mtp_layer(m),) if p.mtp else ()))


def _weights(m: Model, p: Plan) -> dict[str, float]:
    """Stored weights of the fullest stage: its share of the layers plus the larger of both ends."""
    found: dict[str, float] = {}
    stage = -(-m.num_hidden_layers // p.pp) / m.num_hidden_layers
    for layer in _counted_layers(m, p):
        for w in layer_weights(m, layer).values():
            share = p.ep if w.shard == "ep" else p.tp if w.shard else 1
            found[w.kind] = found.get(w.kind, 0.0) + w.bytes / share * (1 if layer.mtp else stage)
    ends = {w.kind: w.bytes / p.tp for w in step_weights(m).values()}
    if p.pp > 1:
        kind, size = max(ends.items(), key=lambda kv: kv[1])
        ends = {kind: size}
    return {**found, **ends}


def in_flight(p: Plan) -> float:
    """Micro-batches whose activations the fullest rank holds at once, each of its whole share."""
    if p.schedule == "gpipe":
        held = float(p.micro_batches)
    elif p.schedule == "dualpipe":
        held = p.pp + 1.0
    elif p.schedule == "interleaved":
        # Warm-up of the first rank: its chunks of the groups that are under way.
        held = p.pp + (p.pp - 1) / p.vp
    else:
        held = float(p.pp)
    return min(held, float(p.micro_batches))


def _activations(m: Model, p: Plan, calls: list[Call]) -> dict[str, float]:
    """Bytes by operator line.

    Training: kept inputs of the micro-batches in flight; full recompute keeps the inputs of layers
    and the rest of one layer. Inference: the widest input of an operator, twice (input and output).
    """
    if p.phase != "train":
        widest = max(calls, key=lambda c: c.cost.kept_bytes(), default=None)
        return (
            {} if widest is None else {f"{widest.label}, in and out": 2 * widest.cost.kept_bytes()}
        )
    wanted = ("own",) if p.recompute == "selective" else ("own", "cheap")
    share = in_flight(p) if p.recompute != "full" else in_flight(p) / m.num_hidden_layers
    kept: dict[str, float] = {}
    for c in calls:
        if c.keep in wanted and c.cost.kept_bytes():
            kept[c.label] = kept.get(c.label, 0.0) + c.count * c.cost.kept_bytes() * share
    if p.recompute == "full":
        stream = p.tokens * m.hidden_size * max(m.hc_mult, 1) * 2
        kept["layer inputs"] = stream * m.num_hidden_layers * in_flight(p) / p.pp
    return dict(sorted(kept.items(), key=lambda kv: -kv[1]))
