"""Which layers and ends of a model every pipeline rank holds: one rule for time and for memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ascendkit.budget.forward import Segment
from ascendkit.budget.plan import Plan
from ascendkit.model import Model
from ascendkit.model.layers import encoder_layers


@dataclass(frozen=True)
class Chunk:
    """Whole layers that follow each other, and whether the ends of the model are with them."""

    layers: range
    first: bool
    last: bool

    def runs(self, m: Model, s: Segment) -> float:
        """Runs of a segment that this chunk makes in one pass."""
        if s.at:
            return sum(i in self.layers for i in s.at)
        if s.name == "source":
            return s.times if encoder_layers(m) in self.layers else 0.0
        here = {"embedding": self.first, "head": self.last, "draft": self.last}
        return s.times if here.get(s.name) else 0.0


def chunks(m: Model, p: Plan) -> tuple[Chunk, ...]:
    """The model in ``pp * vp`` chunks; where layers do not divide, the ends get fewer."""
    n = p.pp * p.vp
    base, more = divmod(m.num_hidden_layers, n)
    sizes = [base] * n
    by_middle = sorted(range(n), key=lambda i: (abs(2 * i - n + 1), i))
    for i in by_middle[:more]:
        sizes[i] += 1
    starts = [sum(sizes[:i]) for i in range(n + 1)]
    return tuple(Chunk(range(starts[i], starts[i + 1]), i == 0, i == n - 1) for i in range(n))


def of_rank(p: Plan, rank: int) -> tuple[int, ...]:
    """Chunks a rank keeps; DualPipe feeds from both ends, so it keeps a stage and its mirror."""
    if mirrored(p):
        return (rank, p.pp - 1 - rank)
    return tuple(range(rank, p.pp * p.vp, p.pp))


def mirrored(p: Plan) -> bool:
    """Whether two ranks hold every stage."""
    return p.phase == "train" and p.schedule == "dualpipe" and p.pp > 1


@dataclass(frozen=True)
class Flow:
    """Seconds of one batch through all stages, and between two batches in a full pipeline."""

    latency: float
    interval: float


def flow(
    m: Model, p: Plan, found: Sequence[Segment], once: Callable[[Segment], float], gap: float = 0.0
) -> Flow:
    """How inference passes the stages, with ``pp`` batches in flight.

    The slowest stage sets the interval. In decode a batch's next token also waits for its last, so
    ``pp`` intervals are never shorter than the latency.

    Args:
        once: seconds of one run of a segment.
        gap: seconds every stage adds to a pass (host time between graphs).
    """
    each = {s.name + str(s.at): once(s) for s in found}
    stages = [
        gap + sum(c.runs(m, s) * each[s.name + str(s.at)] for s in found) for c in chunks(m, p)
    ]
    sends = [(each[s.name + str(s.at)], s.times) for s in found if s.name == "pipeline"]
    latency = sum(stages) + sum(t * times for t, times in sends)
    interval = max(*stages, *(t for t, _ in sends), 0.0)
    if p.phase == "decode":
        interval = max(interval, latency / p.pp)
    return Flow(latency, interval)
