"""One smooth, monotone curve through measured rows.

``t = a + (sum_r (w_r / u_r)^p)^(1/p)``: ``w_r`` are the ideal seconds of a call by resource,
``u_r`` how well this kind of kernel uses each, ``a`` its latency beyond the launch floor, ``p`` how
sharp the corner is where two resources bind (1: they add up, large: the slower one alone). All are
fitted to the rows by least squares of log time, so every resource makes the time longer and never
shorter. Beyond the last row the utilisation of the curve holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

CORNERS = (1.0, 2.0, 8.0)
SHORT = 100e-6
TYPICAL = 0.7
"""Utilisation expected of a large kernel before any row speaks."""
ONE_ROW = 0.25
"""Standard error of log time where a single row says nothing about its own scatter."""


@dataclass(frozen=True)
class Sample:
    """One row on one device: ideal seconds by axis, measured time, and the row's id."""

    work: tuple[float, ...]
    seconds: float
    id: str


class Curve:
    """Samples of one kind of kernel, and what was fitted to them."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = tuple(samples)

    def seconds(self, work: Sequence[float]) -> float:
        """Time of ``work``, on any device: latency and utilisation are what carries over.

        A resource that bound no row is taken to be used no better than those that did.
        """
        theta, axes, p = self._fit
        rates = [math.exp(v) for v in theta[1:]]
        worst = min(rates)
        total = sum(
            (w / (rates[axes.index(i)] if i in axes else worst)) ** p
            for i, w in enumerate(work)
            if w
        )
        return float(math.exp(theta[0]) + total ** (1 / p))

    @property
    def latency(self) -> float:
        """Seconds that do not shrink with the work."""
        return float(math.exp(self._fit[0][0]))

    def utilisation(self, axis: int) -> float | None:
        """Share of the peak rate of an axis that large calls reach; None where no row tells."""
        theta, axes, _ = self._fit
        return float(math.exp(theta[1 + axes.index(axis)])) if axis in axes else None

    @property
    def corner(self) -> float:
        """Sharpness of the corner, ``p``."""
        return self._fit[2]

    @cached_property
    def spread(self) -> float:
        """Standard error of log time: residuals over the rows the fit had to spare."""
        if len(self.samples) < 2:
            return ONE_ROW
        spare = max(len(self.samples) - len(self._fit[0]), 1)
        return math.sqrt(float((self._errors**2).sum()) / spare)

    def nearest(self, work: Sequence[float], n: int = 3) -> list[Sample]:
        """Rows closest to ``work`` in the logs of what it needs, nearest first."""
        import numpy as np

        q = _array(work)
        gap = (np.abs(self._logs - np.log(np.maximum(q, 1e-12))) * (q > 0)).sum(1)
        return [self.samples[i] for i in np.argsort(gap, kind="stable")[:n]]

    def inside(self, work: Sequence[float]) -> bool:
        """Whether the binding resource lies between the smallest and the largest row."""
        axis = max(range(len(work)), key=lambda i: work[i])
        low, high = self._ends[axis]
        return 0.99 * low <= work[axis] <= 1.01 * high

    @cached_property
    def _logs(self) -> Any:
        import numpy as np

        return np.log(np.maximum(_array([s.work for s in self.samples]), 1e-12))

    @cached_property
    def _ends(self) -> list[tuple[float, float]]:
        columns = zip(*(s.work for s in self.samples), strict=True)
        return [(min(c), max(c)) for c in columns]

    @cached_property
    def _errors(self) -> Any:
        import numpy as np

        w = _array([s.work for s in self.samples])
        t = _array([s.seconds for s in self.samples])
        return np.log(_time(self._fit, w) / t)

    @cached_property
    def _fit(self) -> tuple[Any, list[int], float]:
        w = _array([s.work for s in self.samples])
        t = _array([s.seconds for s in self.samples])
        # An axis counts where some row is bound by it, or nearly.
        shares = (w / w.max(1)[:, None]).max(0)
        axes = [i for i, share in enumerate(shares.tolist()) if share > 0.5]
        corners = CORNERS if len(axes) > 1 and len(t) > len(axes) + 2 else (CORNERS[-1],)
        fits = [_fitted(w, t, axes, p) for p in corners]
        _, best = min(enumerate(fits), key=lambda f: (f[1][1], f[0]))
        return best[0], axes, best[2]


def _array(values: Any) -> Any:
    import numpy as np

    return np.asarray(values, dtype=float)


def _time(fit: tuple[Any, list[int], float], w: Any) -> Any:
    import numpy as np

    theta, axes, p = fit
    parts = w[:, axes] / np.exp(theta[1:])
    return np.exp(theta[0]) + (parts**p).sum(1) ** (1 / p)


def _fitted(w: Any, t: Any, axes: list[int], p: float) -> tuple[Any, float, float]:
    """Damped Gauss-Newton on log time, with weak priors that keep it sane on few rows.

    Priors: latency a tenth of the fastest row within a factor of ten; utilisation 70 % within a
    factor of three. They weigh as much as one row each, so a handful of rows outvotes them.
    """
    import numpy as np

    centre = np.array([math.log(t.min() / 10), *([math.log(TYPICAL)] * len(axes))])
    width = np.array([math.log(10), *([math.log(3)] * len(axes))]) * 4
    if len(t) == 1:
        return _of_one_row(float(w[0, axes].max()), float(t[0]), len(axes)), 0.0, p
    top = np.log(np.array([t.min() * 0.999, *([1.02] * len(axes))]))
    theta, damping = np.minimum(centre, top), 1e-2
    log_t = np.log(t)

    def residual(x: Any) -> Any:
        return np.concatenate([np.log(_time((x, axes, p), w)) - log_t, (x - centre) / width])

    r = residual(theta)
    for _ in range(40):
        step = 1e-5
        j = np.stack([(residual(theta + step * e) - r) / step for e in np.eye(len(theta))], 1)
        a = j.T @ j
        move = np.linalg.solve(a + damping * np.diag(np.diag(a)), -j.T @ r)
        trial = np.minimum(theta + np.clip(move, -1, 1), top)
        r_trial = residual(trial)
        if r_trial @ r_trial < r @ r:
            if r @ r - r_trial @ r_trial < 1e-9 * (r @ r):
                theta, r = trial, r_trial
                break
            theta, r, damping = trial, r_trial, damping / 3
        else:
            damping *= 4
            if damping > 1e6:
                break
    return theta, float(r @ r), p


def _of_one_row(work: float, seconds: float, axes: int) -> Any:
    """One row fixes one number: latency where the kernel is short and far from the peak, else rate.

    Nothing that lasts longer than :data:`SHORT` is latency.
    """
    share = work / seconds
    if share > 0.5 or seconds > SHORT:
        return _array([math.log(seconds * 1e-6), *([math.log(share)] * axes)])
    return _array([math.log(seconds - work / TYPICAL), *([math.log(TYPICAL)] * axes)])
