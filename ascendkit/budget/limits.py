"""Which plans a model and a layout allow; every refusal names the nearest legal value."""

from __future__ import annotations

from ascendkit.budget import skew
from ascendkit.budget.overlap.orders import order
from ascendkit.budget.plan import Plan
from ascendkit.errors import bad_value
from ascendkit.model import Model

_USUAL = {"schedule": "1f1b", "recompute": "selective", "zero": 1}
"""What a plan without a backward pass has; anything else would change nothing."""


def check_model(p: Plan, m: Model) -> None:
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


def check_layout(p: Plan, m: Model) -> None:
    if p.zero not in (0, 1):
        raise bad_value("zero", p.zero, "0 or 1", 1)
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
        near = max(round(p.ranks / stage), 1) * stage
        what = "tp * pp" if p.cp == 1 else "tp * pp * cp"
        raise bad_value("ranks", p.ranks, f"a multiple of {what} = {stage}", near)
    if (p.ranks // p.pp) % p.ep:
        near = max(round(p.ranks / p.pp / p.ep), 1) * p.ep * p.pp
        raise bad_value("ranks", p.ranks, f"ranks / pp a multiple of ep = {p.ep}", near)
    if p.interleave not in (1, 2) or (p.interleave == 2 and (p.phase == "train" or p.tokens < 2)):
        raise bad_value("interleave", p.interleave, "1, or 2 in inference with two tokens", 1)
    if p.phase != "train":
        for name, usual in _USUAL.items():
            if getattr(p, name) != usual:
                raise bad_value(
                    name, getattr(p, name), f"none in {p.phase}, where it changes nothing", usual
                )
    if p.schedule == "interleaved" and p.vp == 1:
        raise bad_value("vp", p.vp, "at least 2 chunks a rank for schedule=interleaved", 2)
    if p.schedule == "dualpipe" and p.pp % 2:
        raise bad_value("pp", p.pp, "an even number for schedule=dualpipe", max(p.pp - 1, 2))
    if p.vp > 1 and p.schedule != "interleaved":
        raise bad_value("vp", p.vp, "1 unless schedule=interleaved", 1)
    most = m.num_hidden_layers // p.pp
    if p.vp * p.pp > m.num_hidden_layers:
        raise bad_value("vp", p.vp, f"at most {most} chunks a rank", most)
    if p.phase == "train":
        unit = p.dp * p.batch
        if p.global_batch % unit or not p.global_batch:
            near = max(round(p.global_batch / unit), 1) * unit
            raise bad_value(
                "global_batch", p.global_batch, f"a multiple of dp * batch = {unit}", near
            )
        if p.pp > 1 or p.vp > 1:
            order(p.schedule, 0, p.pp, p.micro_batches, p.vp)


def _divides(name: str, value: int, what: str, total: int) -> None:
    if total % value:
        legal = [d for d in range(1, total + 1) if total % d == 0]
        near = min(legal, key=lambda d: abs(d - value))
        raise bad_value(name, value, f"a divisor of {total} {what}", near)
