"""Predicted against measured: every point, and the scores of those that are claimed.

A point is predicted without any row that comes from its own group, except declared traces and
calibration points, which never count. It is *claimed* when at most a fifth of its time is
transferred or assumed. Scores are of claimed points, a group at a time, then the mean over groups.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from ascendkit.budget.call import Call
from ascendkit.budget.curves.lookup import Stack, timing
from ascendkit.budget.overlap.chains import transfers
from ascendkit.budget.parts import Z90
from ascendkit.budget.validate.runs import Point, points, prepared, timed_run
from ascendkit.data import configs
from ascendkit.hardware import device

LEAST_POINTS, LEAST_GROUPS = 25, 5
"""A score is printed only with this many claimed points in this many groups."""
FILES = ("validation_points.yaml", "validation_runs.yaml")


@dataclass(frozen=True)
class Result:
    """One point: what was predicted, its band, and where the time comes from.

    With ``missing`` rates the predicted time is a lower bound (a rate: an upper one), and its band
    is open on that side.
    """

    point: Point
    predicted: float | None = None
    low: float = 0.0
    high: float = 0.0
    shares: tuple[tuple[str, float], ...] = ()
    reason: str = ""
    missing: tuple[str, ...] = ()

    @property
    def covered(self) -> float:
        """Share of the time that is measured, published or emulated."""
        return sum(v for k, v in self.shares if k in "MPE")

    @property
    def claimed(self) -> bool:
        """Predicted from known rates, not used for calibration, and covered by 80 %."""
        usable = self.predicted is not None and not self.missing
        return usable and self.point.role != "calibration" and self.covered >= 0.8

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one."""
        return None if self.predicted is None else self.predicted / self.point.measured - 1

    @property
    def in_band(self) -> bool:
        """Whether the measured value lies between p10 and p90."""
        return self.low <= self.point.measured <= self.high


def validate() -> list[Result]:
    """All points, predicted now."""
    return [_result(p) for p in points()]


def digest() -> str:
    """Hash of the points and of how they are run; a report names it."""
    h = hashlib.sha256()
    for name in FILES:
        h.update((configs() / "data" / name).read_bytes())
    return h.hexdigest()[:16]


def _result(point: Point) -> Result:
    if point.reason:
        return Result(point, reason=point.reason)
    if "calls" in point.run:
        return _kernel(point)
    _, p, on = prepared(point.run)
    got = timed_run(point.run, point.without)
    accepted = float(point.run.get("acceptance", 0.0))

    def quantity(seconds: float) -> float:
        if point.quantity in ("step_s", "step_ms", "tpot_ms"):
            scale = 1.0 if point.quantity == "step_s" else 1e3
            return seconds * scale / (1 + accepted * (point.quantity == "tpot_ms"))
        tokens = p.seq if p.phase == "prefill" else 1 + accepted
        work = p.global_batch * p.seq if p.phase == "train" else p.dp * p.batch * tokens
        rate = work / (seconds * got.interval / got.seconds) / p.ranks
        return rate * {"tok_s_package": on.ranks_per_package, "tok_s_node": 8}.get(
            point.quantity, 1
        )

    low, high = sorted(quantity(got.quantile(z)) for z in (-Z90, Z90))
    shares = tuple(got.shares.items())
    return Result(point, quantity(got.seconds), low, high, shares, missing=got.missing)


def _kernel(point: Point) -> Result:
    run, on = point.run, device(point.run["hardware"])
    stack = Stack(run["phase"], "graph", point.without)
    calls = [Call(c["op"], c["op"], c["params"]) for c in run["calls"]]
    times = [timing(c, on, stack) for c in calls]
    moving = [t for c, t in zip(calls, times, strict=True) if transfers(c)]
    computing = [t for c, t in zip(calls, times, strict=True) if not transfers(c)]
    parts = [sum(t.seconds for t in side) for side in (moving, computing)]
    # A fused kernel moves and computes at the same time; the longer side decides.
    counted = moving if run.get("fused") and parts[0] > parts[1] else times
    seconds = max(parts) if run.get("fused") else sum(parts)
    if run.get("fused") and counted is times:
        counted = computing
    total = sum(t.seconds for t in counted)
    shares: dict[str, float] = {}
    for t in counted:
        # Rows of separate kernels say how a fused one behaves only by transfer.
        mark = "T" if run.get("fused") and t.mark != "A" else t.mark
        shares[mark] = shares.get(mark, 0.0) + t.seconds / total
    sigma = sum(t.seconds * t.sigma for t in counted) / total
    flops = sum(v for c in calls for (u, _), v in c.cost.flops().items() if u == "cube")

    def quantity(s: float) -> float:
        return s * 1e6 if point.quantity == "us" else flops / s / 1e12

    low, high = sorted(quantity(seconds * math.exp(z * sigma)) for z in (-Z90, Z90))
    missing = tuple(sorted({r for t in times for r in t.missing}))
    marks = tuple(sorted(shares.items()))
    return Result(point, quantity(seconds), low, high, marks, missing=missing)


@dataclass(frozen=True)
class Score:
    """Score of a set of results: median absolute error, shares within, and the number of points."""

    n: int
    median: float
    within_10: float
    within_20: float


def score(results: list[Result]) -> Score:
    """Score of results that have an error."""
    errors = [abs(r.error) for r in results if r.error is not None]
    if not errors:
        return Score(0, math.nan, math.nan, math.nan)
    share = [sum(e <= limit for e in errors) / len(errors) for limit in (0.1, 0.2)]
    return Score(len(errors), median(errors), share[0], share[1])


def groups(results: list[Result]) -> dict[str, list[Result]]:
    """Results by group, in the order of the file."""
    found: dict[str, list[Result]] = {}
    for r in results:
        found.setdefault(r.point.group, []).append(r)
    return found


def pairs(results: list[Result]) -> list[tuple[Result, Result]]:
    """Pairs of a group that measure the same quantity and differ by more than 2 %."""
    usable = [r for r in results if r.predicted is not None and r.point.role != "calibration"]
    return [
        (a, b)
        for members in groups(usable).values()
        for a, b in combinations(members, 2)
        if a.point.quantity == b.point.quantity
        and abs(math.log(a.point.measured / b.point.measured)) > 0.02
    ]


def rank_test(results: list[Result]) -> tuple[int, int]:
    """Pairs ordered as measured, and all pairs."""
    found = pairs(results)
    right = sum(
        (a.point.measured < b.point.measured) == ((a.predicted or 0) < (b.predicted or 0))
        for a, b in found
    )
    return right, len(found)


RATIOS = (
    ("HiF8 over MXFP8, 16 a chip", "a4_v4f_950dt_hif8_256_8k", "a3_v4f_950dt_256_8k"),
    ("HiF8 over MXFP8, 1 M context", "a4_v4f_950dt_hif8_16_1024k", "a3_v4f_950dt_16_1024k"),
    ("FP8 128x128 over MXFP8", "a5_v4f_950dt_fp8mxfp4_256_8k", "a3_v4f_950dt_256_8k"),
    ("two micro-batches over one, A3", "a05_a3_r1_prefill_mb", "a04_a3_r1_prefill"),
    ("MXFP8 over BF16, GB200", "t2_bridge_gb200_2511_mx", "t2_bridge_gb200_2511_bf16"),
    ("GB300 over GB200", "t2_bridge_gb300_2602", "t2_bridge_gb200_2602"),
    ("V4-Pro over V4-Flash, 950DT", "a6_v4p_950dt_16_8k", "a3_v4f_950dt_16_8k"),
    ("64 over 8 sequences, 950PR", "a81_v4f_950pr_b64", "a80_v4f_950pr_b8"),
)
"""Differences that users ask about: name, point above, point below."""


def ratio_test(results: list[Result]) -> list[tuple[str, float, float]]:
    """Name, measured ratio, predicted ratio."""
    by_id = {r.point.id: r for r in results}
    out = []
    for name, above, below in RATIOS:
        a, b = by_id[above], by_id[below]
        if a.predicted is not None and b.predicted is not None:
            out.append((name, a.point.measured / b.point.measured, a.predicted / b.predicted))
    return out
