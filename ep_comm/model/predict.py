"""Time and bandwidth of a call, from its volume and a machine's constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ascendkit.errors import bad_value
from ep_comm.model.fit import Constants, constants
from ep_comm.model.published import Point, shape
from ep_comm.model.volume import Volume, volume


@dataclass(frozen=True)
class Prediction:
    """Model figures of one call.

    Args:
        us: time of the main kernel.
        bound: the link that binds.
        wire_gbs: bytes that cross the binding link, over the time.
        logical_gbs: bytes as benchmarks count them on the binding link, over the time.
        volume: what was moved.
    """

    us: float
    bound: str
    wire_gbs: float
    logical_gbs: float
    volume: Volume


def predict(
    machine: str,
    part: str,
    ranks: int,
    *,
    num_tokens: int = 0,
    hidden: int = 0,
    num_experts: int = 0,
    num_topk: int = 0,
    dtype: str = "",
    skew: float = 1.0,
    low_latency: bool = False,
) -> Prediction:
    """Predict ``dispatch`` or ``combine`` on a machine of :func:`ep_comm.model.published.machines`.

    Args:
        ranks: EP.
        num_tokens, hidden, num_experts, num_topk: the published run's where 0.
        dtype: of rows; FP8 with scales for dispatch, bf16 for combine by default.
        skew: largest over mean of the rows ranks receive.
        low_latency: one row a choice, no deduplication.

    Raises:
        ValueError: ranks over a link that no published run of the machine tells about.
    """
    c = constants(machine, part)
    _told(machine, ranks, c)
    given = {
        "num_tokens": num_tokens, "hidden": hidden, "num_experts": num_experts,
        "num_topk": num_topk,
    }  # fmt: skip
    sizes = {**shape(machine), **{k: v for k, v in given.items() if v}}
    moved = volume(
        part, ranks=ranks, dtype=dtype, dedup=not low_latency and machine != "h800_ll", **sizes
    )
    return of_volume(moved, c, skew)


def _told(machine: str, ranks: int, c: Constants) -> None:
    """ValueError where the machine's constants leave out a link that these ranks use."""
    near = shape(machine)["scaleup_ranks"]
    wanted, legal = "", 0
    if ranks < 2:
        wanted, legal = "at least 2", 2
    elif ranks <= near and c.scaleup_gbs == inf:
        wanted, legal = (
            f"more than {near} on {machine}: its runs tell of the network alone",
            2 * near,
        )
    elif ranks > near and c.scaleout_gbs == inf:
        wanted, legal = f"at most {near} on {machine}: its runs tell of one node alone", near
    if wanted:
        raise bad_value("ranks", ranks, wanted, legal)


def of_volume(v: Volume, c: Constants, skew: float = 1.0) -> Prediction:
    """Time of a volume."""
    links = {
        "scaleup": v.scaleup * skew / c.scaleup_gbs / 1e3,
        "scaleout": v.scaleout * skew / c.scaleout_gbs / 1e3,
    }
    bound = max(links, key=lambda n: links[n])
    us = c.start_us + links[bound] + c.peer_us * v.peers + v.summed * skew / c.sum_gbs / 1e3
    wire = v.scaleup if bound == "scaleup" else v.scaleout
    return Prediction(us, bound, wire / us / 1e3, v.logical(bound) / us / 1e3, v)


@dataclass(frozen=True)
class Held:
    """A published figure, its prediction, and the prediction without it.

    Args:
        error: predicted over published, minus 1.
        left_out: the same with constants fitted on the other points; None for a point that sets no
            constant, or without which the fit has too few.
    """

    point: Point
    predicted: float
    error: float
    left_out: float | None


def held(p: Point) -> Held:
    """Compare one figure, in its own unit."""
    predicted = _figure(p, constants(p.machine, p.part))
    published = p.us if p.low_latency else p.gbs
    left_out = None
    try:
        other = constants(p.machine, p.part, p)
        if other != constants(p.machine, p.part):
            left_out = _figure(p, other) / published - 1
    except ValueError:
        # Too few points are left.
        pass
    return Held(p, predicted, predicted / published - 1, left_out)


def _figure(p: Point, c: Constants) -> float:
    us = of_volume(p.volume, c).us
    return us if p.low_latency else p.volume.logical(p.link) / us / 1e3
