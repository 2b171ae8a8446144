"""A training step over pipeline ranks: slots in order, each waiting for its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ascendkit.budget.overlap.orders import Slot, Work, order


@dataclass(frozen=True)
class Stage:
    """Seconds of one model chunk for one micro-batch.

    Args:
        forward, backward: alone; ``backward`` is the whole of it.
        weight: of the backward, the half that makes weight gradients.
        both: a forward and a backward of two micro-batches run together.
        send: handing activations on.
    """

    forward: float
    backward: float
    weight: float
    both: float
    send: float = 0.0


@dataclass(frozen=True)
class Bar:
    """One slot of one rank on the timeline."""

    rank: int
    start: float
    end: float
    slot: Slot


@dataclass(frozen=True)
class Run:
    """A simulated step: end of the last slot, every bar, and seconds of each kind on each rank."""

    seconds: float
    bars: tuple[Bar, ...]
    busy: tuple[float, ...]

    @property
    def bubble(self) -> float:
        """Seconds the busiest rank idles."""
        return self.seconds - max(self.busy)


def simulate(schedule: str, stages: Sequence[Stage], pp: int, micro: int, vp: int = 1) -> Run:
    """Run ``micro`` micro-batches through ``pp`` ranks; ``stages`` has ``pp * vp`` chunks."""
    waiting = [order(schedule, rank, pp, micro, vp) for rank in range(pp)]
    position = [0] * pp
    free = [0.0] * pp
    busy = [0.0] * pp
    done: dict[Work, float] = {}
    bars: list[Bar] = []
    moved = True
    while moved:
        moved = False
        for rank, slots in enumerate(waiting):
            while position[rank] < len(slots):
                slot = slots[position[rank]]
                ready = _ready(slot, done, stages)
                if ready is None:
                    break
                start = max(free[rank], ready)
                length = _length(slot, stages)
                end = start + length
                bars.append(Bar(rank, start, end, slot))
                for work in slot:
                    done[work._replace(kind="B") if work.kind == "I" else work] = end
                free[rank] = end
                busy[rank] += length
                position[rank] += 1
                moved = True
    if any(p < len(s) for p, s in zip(position, waiting, strict=True)):
        raise ValueError(f"schedule {schedule!r} waits for itself: pp {pp}, micro-batches {micro}")
    return Run(max(free), tuple(bars), tuple(busy))


def counts(schedule: str, rank: int, pp: int, micro: int, vp: int = 1) -> Mapping[str, int]:
    """Slots by kind on one rank; ``FB`` are those of both."""
    found: dict[str, int] = {}
    for slot in order(schedule, rank, pp, micro, vp):
        name = "".join(w.kind for w in slot)
        found[name] = found.get(name, 0) + 1
    return found


def _ready(slot: Slot, done: Mapping[Work, float], stages: Sequence[Stage]) -> float | None:
    """When everything a slot needs is there; None while something is not scheduled."""
    latest = 0.0
    for work in slot:
        if work.kind == "W":
            before = work._replace(kind="B")
        elif work.kind == "F":
            if work.chunk == 0:
                continue
            before = work._replace(chunk=work.chunk - 1)
        else:
            last = work.chunk == len(stages) - 1
            before = work._replace(
                kind="F" if last else "B", chunk=work.chunk if last else work.chunk + 1
            )
        if before not in done:
            return None
        send = stages[work.chunk].send if before.chunk != work.chunk else 0.0
        latest = max(latest, done[before] + send)
    return latest


def _length(slot: Slot, stages: Sequence[Stage]) -> float:
    if len(slot) == 2:
        # The two micro-batches are of different chunks where the rank holds two; what running
        # together saves is the share measured on each chunk with itself.
        front, back = (stages[w.chunk] for w in slot)
        alone = sum(s.forward + s.backward for s in (front, back))
        kept = (front.both + back.both) / alone if alone else 1.0
        return max(kept * (front.forward + back.backward), front.forward, back.backward)
    (work,) = slot
    s = stages[work.chunk]
    return {
        "F": s.forward, "B": s.backward, "W": s.weight, "I": max(s.backward - s.weight, 0.0),
    }[work.kind]  # fmt: skip
