"""Memory that was read before anybody wrote it, and the launches that try a range of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ascendkit.emulator.device import Poison
from ascendkit.emulator.records import SPACES
from ascendkit.emulator.verdicts import Candidate

NOWHERE = -1


@dataclass(frozen=True)
class Trial:
    """Another poison, of global memory in region ``only`` of the tensors alone if that is given."""

    poison: Poison
    only: int | None = None


@dataclass
class Suspect:
    """One range of memory that was read before anybody wrote it, by all who read parts of it."""

    candidates: list[Candidate]
    base: int
    end: int

    def trial(self, kind: int, extra: int) -> Trial:
        """The launch in which this range alone has another poison, of ``kind``; ``extra``: regions
        before those of the tensors."""
        c = self.candidates[0]
        if c.space == "GM":
            return Trial(Poison(kind, ((0, 0, 0, 0),)), c.region - extra)  # nothing on chip
        place = (SPACES.index(c.space), c.sub, self.base, self.end - self.base)
        return Trial(Poison(kind, (place,)), NOWHERE)


def suspects_of(candidates: Sequence[Candidate]) -> list[Suspect]:
    """Overlapping ranges of one memory are one; the order is that of their first read."""
    found: list[Suspect] = []
    for c in sorted(candidates, key=lambda c: (c.space, c.sub, c.region, c.base, c.end)):
        last = found[-1] if found else None
        if last is not None:
            o = last.candidates[0]
            same = (o.space, o.sub, o.region) == (c.space, c.sub, c.region)
            if same and (c.base < last.end or c.space == "GM"):
                last.candidates.append(c)
                last.end = max(last.end, c.end)
                continue
        found.append(Suspect([c], c.base, c.end))
    for s in found:
        s.candidates.sort(key=lambda c: c.site)
    return sorted(found, key=lambda s: s.candidates[0].site)
