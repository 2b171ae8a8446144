"""In which order a rank works through its micro-batches: GPipe, 1F1B, interleaved 1F1B, DualPipe.

A slot is a tuple of tasks done together: one forward, one backward (whole, or its input half), one
weight half, or a forward beside a backward. A task names its kind, its direction and micro-batch,
and the model chunk it belongs to.
"""

from __future__ import annotations

from typing import NamedTuple

from ascendkit.errors import bad_value

SCHEDULES = ("1f1b", "interleaved", "gpipe", "dualpipe")


class Work(NamedTuple):
    """``kind``: F forward, B backward, I input half of it, W weight half of it."""

    kind: str
    direction: int
    micro: int
    chunk: int


Slot = tuple[Work, ...]


def order(schedule: str, rank: int, pp: int, micro: int, vp: int = 1) -> list[Slot]:
    """Slots of one rank for ``micro`` micro-batches. ValueError where the schedule cannot run."""
    if schedule == "gpipe":
        return [(Work(kind, 0, i, rank),) for kind in "FB" for i in range(micro)]
    if schedule == "dualpipe":
        if pp % 2:
            raise bad_value("pp", pp, "an even number for dualpipe", max(pp - 1, 2))
        if micro % 2 or micro < 2 * pp:
            legal = max(2 * pp, micro + micro % 2)
            raise bad_value(
                "micro-batches", micro, f"for dualpipe an even number, at least 2 * pp = {2 * pp}",
                legal,
            )  # fmt: skip
        return _dualpipe(rank, pp, micro)
    if schedule == "interleaved" and vp > 1:
        if micro % pp:
            raise bad_value(
                "micro-batches",
                micro,
                f"a multiple of pp = {pp} when interleaved",
                max(round(micro / pp), 1) * pp,
            )
        return _interleaved(rank, pp, micro, vp)
    return _one_f_one_b(rank, pp, micro)


def _one_f_one_b(rank: int, pp: int, micro: int) -> list[Slot]:
    warm = min(pp - rank - 1, micro)
    slots: list[Slot] = [(Work("F", 0, i, rank),) for i in range(warm)]
    for i in range(micro - warm):
        slots += [(Work("F", 0, i + warm, rank),), (Work("B", 0, i, rank),)]
    return slots + [(Work("B", 0, i, rank),) for i in range(micro - warm, micro)]


def _interleaved(rank: int, pp: int, micro: int, vp: int) -> list[Slot]:
    """``pp`` micro-batches go through chunk after chunk; chunk c of rank r is c*pp + r."""
    total = micro * vp

    def work(kind: str, k: int) -> Work:
        group, inside = divmod(k, pp * vp)
        chunk, lane = divmod(inside, pp)
        if kind == "B":
            chunk = vp - 1 - chunk
        return Work(kind, 0, group * pp + lane, chunk * pp + rank)

    warm = min((pp - rank - 1) * 2 + (vp - 1) * pp, total)
    slots: list[Slot] = [(work("F", k),) for k in range(warm)]
    for k in range(total - warm):
        slots += [(work("F", k + warm),), (work("B", k),)]
    return slots + [(work("B", k),) for k in range(total - warm, total)]


def _dualpipe(rank: int, pp: int, micro: int) -> list[Slot]:
    """Both ends feed micro-batches; in the middle every slot is a forward and a backward.

    Counts follow the published algorithm: with h the distance to the nearer end, a rank does
    2 (micro/2 - pp + h + 1) + (pp/2 - h - 1) slots of both, after the first.
    """
    half = pp // 2
    h = min(rank, pp - 1 - rank)
    flip = int(rank >= half)
    seen = {(kind, d): 0 for kind in "FBW" for d in (0, 1)}
    owed: list[Work] = []
    slots: list[Slot] = []

    def next_of(kind: str, side: int) -> Work:
        direction = side ^ flip
        i = seen[kind, direction]
        seen[kind, direction] += 1
        return Work(kind, direction, i, rank if direction == 0 else pp - 1 - rank)

    def forward(side: int) -> None:
        slots.append((next_of("F", side),))

    def backward(side: int, split: bool = False) -> None:
        b = next_of("B", side)
        if split:
            owed.append(b._replace(kind="W"))
            b = b._replace(kind="I")
        slots.append((b,))

    def weights() -> None:
        slots.append((owed.pop(0),))

    def both(f: int, b: int) -> None:
        slots.append((next_of("F", f), next_of("B", b)))

    for _ in range(2 * (half - h - 1)):
        forward(0)
    for _ in range(h + 1):
        forward(0)
        forward(1)
    for _ in range(half - h - 1):
        backward(1, True)
        weights()
        forward(1)
    for i in range(micro // 2 - pp + h + 1):
        if i == 0 and h == half - 1:
            # The two middle ranks have nothing to pair yet.
            forward(0)
            backward(1)
        else:
            both(0, 1)
        both(1, 0)
    for _ in range(half - h - 1):
        backward(1)
        both(1, 0)
    late = (h + 1) // 2
    for i in range(h + 1):
        backward(1, split=i >= late if h % 2 else i > late)
        backward(0, split=i >= late)
    for _ in range(half - h - 1):
        weights()
        backward(0, True)
    while owed:
        weights()
    return slots
