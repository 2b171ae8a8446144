"""Pieces of a step's time, their origin, and the error of their sum."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.curves.work import key_of
from ascendkit.budget.overlap.chains import Timed
from ascendkit.budget.overlap.fluid import Task
from ascendkit.budget.overlap.pipeline import Run
from ascendkit.hardware import Device

Z90 = 1.2816
"""Standard errors between the median and the 90th percentile."""


@dataclass(frozen=True)
class Part:
    """A piece of the step that adds to its time: a kind of layer, a bubble, a gap.

    Args:
        name: line of the report.
        seconds: how much longer the step is for it.
        serial: seconds of its kernels one after another.
        tasks: one run of it, scheduled; for the timeline.
        mark: origin of its time where it is not made of kernels.
    """

    name: str
    seconds: float
    serial: float
    tasks: tuple[Task, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step: in inference over pipeline stages, of one batch through all of them.

    Args:
        parts: pieces that add up to ``seconds``.
        shares: share of kernel and gap time by mark.
        sigma: standard error of log(seconds), by error propagation over kinds of kernels.
        pipeline: the simulated pipeline of a training step.
        between: inference over pipeline stages: seconds from one batch to the next; None where a
            rank has one batch at a time.
        missing: resources without a known rate that some call needs: the time is a lower bound.
    """

    parts: tuple[Part, ...]
    shares: dict[str, float]
    sigma: float
    pipeline: Run | None = field(default=None, repr=False)
    missing: tuple[str, ...] = ()
    between: float | None = None

    @property
    def seconds(self) -> float:
        """Expected time."""
        return sum(p.seconds for p in self.parts)

    @property
    def interval(self) -> float:
        """Seconds between two steps of a rank: the step itself without a pipeline."""
        return self.seconds if self.between is None else self.between

    @property
    def serial(self) -> float:
        """Kernels one after another, gaps included."""
        return sum(p.serial for p in self.parts)

    def quantile(self, z: float) -> float:
        """Time ``z`` standard errors above the expected one; infinite above a lower bound."""
        return math.inf if self.missing and z > 0 else self.seconds * math.exp(z * self.sigma)

    @property
    def band(self) -> tuple[float, float | None]:
        """p10 and p90 of the time; a lower bound has no p90."""
        return self.quantile(-Z90), None if self.missing else self.quantile(Z90)

    @property
    def claimed(self) -> bool:
        """Whether every rate is known and at most a fifth is transferred or assumed."""
        return not self.missing and self.shares.get("T", 0.0) + self.shares.get("A", 0.0) <= 0.2


def timed(calls: Iterable[Call], on: Device, stack: Stack) -> list[Timed]:
    """Calls with their times."""
    return [Timed(c, timing(c, on, stack)) for c in calls]


def added(parts: list[Part], calls: list[Call], on: Device, stack: Stack) -> StepTime:
    """Shares by mark, and the error of the sum: one error for each kind of kernel."""
    by_mark: dict[str, float] = defaultdict(float)
    by_kind: dict[object, float] = defaultdict(float)
    missing: dict[str, None] = {}
    for c in calls:
        got = timing(c, on, stack)
        seconds = got.seconds * c.count
        by_mark[got.mark] += seconds
        by_kind[key_of(c, on), got.mark] += seconds * got.sigma
        missing |= dict.fromkeys(got.missing)
    for part in parts:
        if part.mark:
            by_mark[part.mark] += part.seconds
            by_kind[part.name] += part.seconds * 0.3
    total = sum(by_mark.values()) or 1.0
    sigma = math.sqrt(sum(v * v for v in by_kind.values())) / total
    shares = {k: v / total for k, v in sorted(by_mark.items())}
    return StepTime(tuple(parts), shares, sigma, missing=tuple(sorted(missing)))
