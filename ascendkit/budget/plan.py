"""What is to be budgeted: a workload and a parallel layout, checked before anything is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ascendkit.budget import skew
from ascendkit.budget.curves.rows import MODES as LAUNCHES
from ascendkit.budget.overlap.chains import MODES as OVERLAPS
from ascendkit.budget.overlap.orders import SCHEDULES, order
from ascendkit.errors import bad_type, bad_value, unknown
from ascendkit.model import Model

PHASES = ("train", "prefill", "decode")
RECOMPUTE = ("none", "selective", "full")
CHOICES = {
    "phase": PHASES,
    "recompute": RECOMPUTE,
    "schedule": ("auto", *SCHEDULES),
    "overlap": OVERLAPS,
    "launch": LAUNCHES,
}
MAY_BE_ZERO = ("mtp", "zero", "ranks", "global_batch", "context")


@dataclass(frozen=True)
class Plan:
    """One step of one model on ``ranks`` ranks.

    Args:
        phase: ``train``, ``prefill`` or ``decode``.
        batch: sequences a rank processes at a time (a micro-batch in training).
        seq: new tokens of a sequence: its length in training, the chunk in prefill,
            1 + drafts in decode.
        context: tokens a sequence has after this step, prefix included.
        global_batch: sequences of a training step, over all ranks.
        mtp: training: also the multi-token-prediction layer; decode: its drafts per step.
        ranks: devices in all; 0 derives it (tp * pp * ep).
        tp, pp, ep, cp: tensor, pipeline, expert and context parallel sizes; context parallelism
            splits the new tokens of every sequence.
        zero: ZeRO stage for optimizer states: 0 (replicated) or 1 (sharded over data parallel).
        recompute: what the backward pass computes again: ``none``; ``selective``, norms, SwiGLU and
            the up-projections before attention; ``full``, everything but layer inputs.
        schedule: how pipeline ranks order micro-batches (``auto``: dualpipe where it can run, else
            1f1b); ``vp`` chunks a rank when interleaved.
        interleave: micro-batches that take turns in one inference pass (2 hides communication).
        overlap: branches that run beside each other: what published stacks do, none, or all.
        launch: how kernels are launched.
        routing: ``balanced``, ``zipf:<s>`` or one weight an expert; the fullest rank decides.
    """

    phase: str
    batch: int
    seq: int
    context: int
    global_batch: int = 0
    mtp: int = 0
    ranks: int = 0
    tp: int = 1
    pp: int = 1
    ep: int = 1
    zero: int = 1
    recompute: str = "selective"
    cp: int = 1
    vp: int = 1
    schedule: str = "1f1b"
    interleave: int = 1
    overlap: str = "auto"
    launch: str = "graph"
    routing: str | tuple[float, ...] = skew.BALANCED

    @property
    def tokens(self) -> int:
        """New tokens one rank's attention sees in one pass."""
        return self.batch * self.seq // self.cp

    @property
    def moe_tokens(self) -> float:
        """Tokens one rank routes: its tensor-parallel group shares them."""
        return self.tokens / self.tp

    @property
    def dp(self) -> int:
        """Data-parallel replicas."""
        return self.ranks // (self.tp * self.pp * self.cp)

    @property
    def micro_batches(self) -> int:
        """Passes one rank makes in a step."""
        if self.phase != "train":
            return 1
        return self.global_batch // (self.dp * self.batch)


def plan(config: Mapping[str, Any], m: Model) -> Plan:
    """A checked plan from a composed configuration.

    Raises ValueError or TypeError with what was got, what is wanted, and the nearest legal value.
    """
    got = {f.name: config[f.name] for f in fields(Plan) if config.get(f.name) is not None}
    for name, value in got.items():
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise unknown(name, value, CHOICES[name])
            continue
        if name == "routing":
            got[name] = _routing(value)
            continue
        if isinstance(value, bool):
            got[name] = value = int(value)
        if not isinstance(value, int):
            raise bad_type(name, value, "an integer")
        if value < (0 if name in MAY_BE_ZERO else 1):
            raise bad_value(name, value, "a positive size", 1)
    p = _derive(got, m)
    _check_model(p, m)
    _check_layout(p, m)
    return p


def _routing(value: Any) -> str | tuple[float, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(w, (int, float)) and not isinstance(w, bool) for w in value
    ):
        raise bad_type("routing", value, "balanced, zipf:<s> or a list of numbers")
    return skew.BALANCED if not value else tuple(map(float, value))


def _derive(got: dict[str, Any], m: Model) -> Plan:
    """Fill what follows from the rest: drafts lengthen decode, context defaults to the sequence."""
    if got["phase"] == "decode":
        got["seq"] = 1 + got.get("mtp", 0)
    got["context"] = got.get("context") or got["seq"]
    tp, pp, ep = got.get("tp", 1) * got.get("cp", 1), got.get("pp", 1), got.get("ep", 1)
    if not got.get("ranks"):
        # Experts live on data-parallel ranks, so the smallest layout has lcm-free tp | ep.
        got["ranks"] = pp * max(ep, tp)
    if got["phase"] == "train" and not got.get("global_batch"):
        got["global_batch"] = got["batch"] * max(got["ranks"] // (tp * pp), 1)
    p = Plan(**got)
    if p.schedule != "auto":
        return p
    pairs = p.pp % 2 == 0 and p.phase == "train" and p.batch * p.dp
    micro = p.micro_batches if pairs else 0
    fits = micro % 2 == 0 and micro >= 2 * p.pp
    return replace(p, schedule="dualpipe" if fits and p.vp == 1 else "1f1b")


def _check_model(p: Plan, m: Model) -> None:
    if p.context < p.seq:
        raise bad_value("context", p.context, f"at least seq = {p.seq}", p.seq)
    if m.max_position_embeddings and p.context > m.max_position_embeddings:
        raise bad_value(
            "context",
            p.context,
            f"at most max_position_embeddings of {m.key}",
            m.max_position_embeddings,
        )
    if p.mtp and m.family == "v4_1":
        raise bad_value(
            "mtp", p.mtp, f"0 for {m.key}: the size of its draft stages is not published", 0
        )
    most = m.num_nextn_predict_layers and (1 if p.phase == "train" else 8)
    if p.mtp > most:
        raise bad_value("mtp", p.mtp, f"at most {most} for {m.key} in {p.phase}", most)


def _check_layout(p: Plan, m: Model) -> None:
    skew.check(p.routing, m.n_routed_experts)
    _divides("cp", p.cp, "new tokens of a sequence", p.seq)
    _divides("ep", p.ep, "experts", m.n_routed_experts)
    _divides("tp", p.tp, "heads", m.num_attention_heads)
    if m.o_groups > 1:
        _divides("tp", p.tp, "output groups", m.o_groups)
    if p.pp > m.num_hidden_layers:
        raise bad_value(
            "pp", p.pp, f"at most the {m.num_hidden_layers} layers", m.num_hidden_layers
        )
    stage = p.tp * p.pp * p.cp
    if p.ranks % stage:
        near = max(p.ranks // stage, 1) * stage
        what = "tp * pp" if p.cp == 1 else "tp * pp * cp"
        raise bad_value("ranks", p.ranks, f"a multiple of {what} = {stage}", near)
    if (p.ranks // p.pp) % p.ep:
        near = max(p.ranks // p.pp // p.ep, 1) * p.ep * p.pp
        raise bad_value("ranks", p.ranks, f"ranks / pp a multiple of ep = {p.ep}", near)
    if p.interleave not in (1, 2) or (p.interleave == 2 and (p.phase == "train" or p.tokens < 2)):
        raise bad_value("interleave", p.interleave, "1, or 2 in inference with two tokens", 1)
    if p.vp > 1 and p.schedule != "interleaved":
        raise bad_value("vp", p.vp, "1 unless schedule=interleaved", 1)
    if p.vp * p.pp > m.num_hidden_layers:
        raise bad_value("vp", p.vp, f"at most {m.num_hidden_layers // p.pp} chunks a rank", 1)
    if p.phase == "train":
        unit = p.dp * p.batch
        if p.global_batch % unit or not p.global_batch:
            near = max(round(p.global_batch / unit), 1) * unit
            raise bad_value(
                "global_batch", p.global_batch, f"a multiple of dp * batch = {unit}", near
            )
        if p.pp > 1:
            order(p.schedule, 0, p.pp, p.micro_batches, p.vp)
    if p.zero not in (0, 1):
        raise bad_value("zero", p.zero, "0 or 1", 1)


def _divides(name: str, value: int, what: str, total: int) -> None:
    if total % value:
        legal = [d for d in range(1, total + 1) if total % d == 0]
        near = min(legal, key=lambda d: abs(d - value))
        raise bad_value(name, value, f"a divisor of {total} {what}", near)
