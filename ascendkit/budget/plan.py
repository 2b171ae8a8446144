"""What is to be budgeted: a workload and a parallel layout, checked before anything is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, isfinite
from typing import Any

from ascendkit.budget import skew
from ascendkit.budget.curves.facts import MODES as LAUNCHES
from ascendkit.budget.overlap.chains import MODES as OVERLAPS
from ascendkit.budget.overlap.orders import SCHEDULES
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
LARGEST = 2**30
"""No size of a plan is beyond this; counts stay exact in double precision."""


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
    def moe_tokens(self) -> int:
        """Tokens the fullest rank routes: its tensor-parallel group shares them."""
        return ceil(self.tokens / self.tp)

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
            zero = name in MAY_BE_ZERO
            raise bad_value(name, value, "at least 0" if zero else "a positive size", 1 - zero)
        if value > LARGEST:
            raise bad_value(name, value, "a size that fits a real machine", LARGEST)
    from ascendkit.budget.limits import check_layout, check_model

    p = _derive(got, m)
    check_model(p, m)
    check_layout(p, m)
    return p


def _routing(value: Any) -> str | tuple[float, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(w, (int, float)) and not isinstance(w, bool) for w in value
    ):
        raise bad_type("routing", value, "balanced, zipf:<s> or a list of numbers")
    if not all(isfinite(w) for w in value):
        raise bad_value("routing", list(value), "finite weights of at least 0")
    return skew.BALANCED if not value else tuple(map(float, value))


def _derive(got: dict[str, Any], m: Model) -> Plan:
    """Fill what follows from the rest: drafts lengthen decode, context defaults to the sequence."""
    if got["phase"] == "decode":
        if got.get("seq", 1) not in (1, 1 + got.get("mtp", 0)):
            raise bad_value("seq", got["seq"], "1 in decode, which adds the drafts of mtp", 1)
        got["seq"] = 1 + got.get("mtp", 0)
    if got["phase"] != "train" and got.get("global_batch"):
        raise bad_value("global_batch", got["global_batch"], f"none in {got['phase']}", "null")
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
