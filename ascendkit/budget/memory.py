"""Device memory of the fullest rank, by kind, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ascendkit.budget.activations import kept, widest
from ascendkit.budget.forward import Segment
from ascendkit.budget.kv import kv_bytes, layer_kv
from ascendkit.budget.params import held_layers, held_weights, local_params, share
from ascendkit.budget.plan import Plan
from ascendkit.budget.skew import load
from ascendkit.formats import width
from ascendkit.model import Model

GRADIENT_BYTES = 4
OPTIMIZER_BYTES = 12
"""fp32 gradients; fp32 master weights and both AdamW moments."""


@dataclass(frozen=True)
class Memory:
    """Bytes on pipeline rank ``rank``; ``kv_per_token``, ``kv_fixed``: one sequence, all layers."""

    weights: dict[str, float]
    gradients: float
    optimizer: float
    activations: dict[str, float]
    kv_per_token: float
    kv_fixed: float
    kv_cache: float
    ep_buffer: float
    rank: int = 0

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


def memory(m: Model, p: Plan, found: Sequence[Segment]) -> Memory:
    """Memory of the fullest pipeline rank; ``found`` are the segments of one forward pass.

    Inference holds ``pp`` batches at a time, or its stages would idle.
    """
    per_token, fixed = kv_bytes(m, mtp=p.mtp > 0)
    wide = {} if p.phase == "train" else widest(c for s in found for c in s.calls)
    buffer = _ep_buffer(m, p)
    ranks = (_of_rank(m, p, found, wide, r) for r in range(p.pp))
    fullest = max(ranks, key=lambda held: held.total)
    return replace(fullest, kv_per_token=per_token, kv_fixed=fixed, ep_buffer=buffer)


def _of_rank(
    m: Model, p: Plan, found: Sequence[Segment], wide: dict[str, float], rank: int
) -> Memory:
    gradients = optimizer = cache = 0.0
    weights: dict[str, float] = {}
    for w in held_weights(m, p, rank):
        weights[w.kind] = weights.get(w.kind, 0.0) + w.bytes / share(p, w)
    if p.phase == "train":
        for _, params, replicas in local_params(m, p, rank):
            gradients += params * GRADIENT_BYTES
            optimizer += params * OPTIMIZER_BYTES / (replicas if p.zero else 1)
        wide = kept(m, p, found, rank)
    else:
        for layer in held_layers(m, p, rank):
            per_token, fixed = layer_kv(m, layer)
            cache += p.pp * p.batch * (per_token * p.context / p.cp + fixed)
    return Memory(weights, gradients, optimizer, wide, 0.0, 0.0, cache, 0.0, rank)


def _ep_buffer(m: Model, p: Plan) -> float:
    """Receive buffers of dispatch (every rank may send all its tokens) and of combine (BF16).

    Sized for the largest pass: in decode every rank keeps room for all others, in prefill and
    training for the rows the fullest rank is expected to receive.
    """
    if p.ep == 1:
        return 0.0
    rows: float = p.moe_tokens * m.num_experts_per_tok
    if p.phase == "decode":
        rows = p.moe_tokens * min(p.ep, m.n_routed_experts)
    else:
        rows *= load(
            p.routing, m.n_routed_experts, m.num_experts_per_tok, p.ep, p.moe_tokens * p.ep
        ).factor
    return p.interleave * rows * m.hidden_size * (width(m.activation_format) + width("bf16"))
