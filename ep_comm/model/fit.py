"""Constants of a machine, fitted on its published points by least squares of relative errors.

A time is linear in what is fitted: bytes over a link times 1/rate, peers times a cost, a start.
With a link fixed (combine on Ascend uses the rate that dispatch shows), its time comes off first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ep_comm.model.published import Point, points

Column = Callable[[Point], float]


@dataclass(frozen=True)
class Constants:
    """What a machine's links do.

    Args:
        scaleup_gbs, scaleout_gbs: rate of a rank, bytes on the wire; inf where it never binds.
        peer_us: cost of each peer.
        start_us: cost of a call.
        sum_gbs: rate of partial sums on the experts' rank; inf where they are hidden.
        origin: how each was found.
    """

    scaleup_gbs: float = float("inf")
    scaleout_gbs: float = float("inf")
    peer_us: float = 0.0
    start_us: float = 0.0
    sum_gbs: float = float("inf")
    origin: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Recipe:
    """Which points set which constants.

    Args:
        points: chooses them.
        columns: name of a constant -> its factor in the time, in us.
        fixed: time already explained, from constants found before.
        text: for ``origin``.
    """

    points: Callable[[Point], bool]
    columns: dict[str, Column]
    text: str
    fixed: Callable[[Point, Constants], float] = lambda p, c: 0.0


def _up(p: Point) -> float:
    return p.volume.scaleup / 1e3


def _out(p: Point) -> float:
    return p.volume.scaleout / 1e3


RECIPES: dict[tuple[str, str], tuple[Recipe, ...]] = {
    ("ascend_950dt", "dispatch"): (
        Recipe(
            lambda p: p.part == "dispatch" and p.ranks in (8, 128),
            {"scaleup_gbs": _up, "peer_us": lambda p: p.volume.peers},
            "EP8 and EP128 of dispatch; EP16, 32, 64 are predicted",
        ),
    ),
    ("ascend_950dt", "combine"): (
        Recipe(
            lambda p: p.part == "combine",
            {"peer_us": lambda p: p.volume.peers, "sum_gbs": lambda p: p.volume.summed / 1e3},
            "rate of dispatch kept; peers and partial sums fitted on combine EP8 to EP128",
            lambda p, c: _up(p) / c.scaleup_gbs,
        ),
    ),
    ("sm90_cx7", ""): (
        Recipe(lambda p: True, {"scaleout_gbs": _out}, "one rate for dispatch and combine"),
    ),
    ("sm100_nvlink", ""): (
        Recipe(lambda p: True, {"scaleup_gbs": _up}, "one rate for dispatch and combine, 64 SMs"),
    ),
    ("sm100_nvlink_24sm", ""): (
        Recipe(lambda p: True, {"scaleup_gbs": _up}, "one rate for dispatch and combine, 24 SMs"),
    ),
    ("h800_v1", ""): (
        Recipe(lambda p: p.bound == "scaleup", {"scaleup_gbs": _up}, "EP8 and EP16"),
        Recipe(lambda p: p.bound == "scaleout", {"scaleout_gbs": _out}, "EP32 and EP64"),
    ),
    ("h800_ll", "dispatch"): (
        Recipe(
            lambda p: p.part == "dispatch" and p.bound == "scaleout",
            {"start_us": lambda p: 1.0, "scaleout_gbs": _out},
            "dispatch EP16 to EP256",
        ),
    ),
    ("h800_ll", "combine"): (
        Recipe(
            lambda p: p.part == "combine" and p.bound == "scaleout",
            {"start_us": lambda p: 1.0, "scaleout_gbs": _out},
            "combine EP16 to EP256",
        ),
    ),
}
BASE = {("ascend_950dt", "combine"): ("ascend_950dt", "dispatch")}
"""Constants that another part of the machine starts from."""
GIVEN = {"h800_ll": {"scaleup_gbs": 160.0}}
"""Constants no point sets: the maximum that DeepEP's documentation states for H800's NVLink."""
RATES = ("scaleup_gbs", "scaleout_gbs", "sum_gbs")


def key_of(machine: str, part: str) -> tuple[str, str]:
    """Recipes of a part, or of the machine where both parts share them."""
    return (machine, part) if (machine, part) in RECIPES else (machine, "")


@lru_cache(maxsize=64)
def constants(machine: str, part: str, without: Point | None = None) -> Constants:
    """Fitted constants.

    Args:
        without: a point that must not count, to see how it is predicted by the others.
    """
    key = key_of(machine, part)
    found = Constants()
    if key in BASE:
        base = constants(*BASE[key])
        found = Constants(scaleup_gbs=base.scaleup_gbs, origin=base.origin)
    if machine in GIVEN:
        told = ", ".join(f"{n} {v:g}: stated, not fitted" for n, v in GIVEN[machine].items())
        found = Constants(**GIVEN[machine], origin=(told,))
    for recipe in RECIPES[key]:
        mine = [p for p in points() if p.machine == machine and recipe.points(p)]
        mine = [p for p in mine if p != without]
        names = list(recipe.columns)
        if len(mine) < len(names):
            raise ValueError(f"{machine} {part}: {len(mine)} points, wanted >= {len(names)}")
        rows = [[recipe.columns[n](p) / p.us for n in names] for p in mine]
        target = [1 - recipe.fixed(p, found) / p.us for p in mine]
        solved = dict(zip(names, _least_squares(rows, target)))
        values = {n: (1 / v if n in RATES else v) for n, v in solved.items()}
        told = f"{', '.join(names)}: {recipe.text}"
        found = Constants(**{**found.__dict__, **values, "origin": (*found.origin, told)})
    return found


def _least_squares(rows: Sequence[Sequence[float]], target: Sequence[float]) -> list[float]:
    """One or two unknowns, by the normal equations."""
    count = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) for j in range(count)] for i in range(count)]
    b = [sum(r[i] * t for r, t in zip(rows, target)) for i in range(count)]
    if count == 1:
        return [b[0] / a[0][0]]
    det = a[0][0] * a[1][1] - a[0][1] * a[1][0]
    return [(b[0] * a[1][1] - b[1] * a[0][1]) / det, (a[0][0] * b[1] - a[1][0] * b[0]) / det]
