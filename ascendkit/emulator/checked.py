"""A launch with judges: on guarded copies of its tensors, and again with another poison if it read
memory that nobody wrote.

Uninitialised memory is no finding when it is read: whole registers over the end of a tile are
legal. It is one when it *matters*. The judge of memory lists the reads of bytes that nobody wrote.
If there are any, the launch is repeated from the same inputs with large numbers of alternating sign
instead of ones in all such memory: a byte of a tensor that differs was reached by it
(AK-UNINIT-003), another sequence of instructions means that a branch was (AK-UNINIT-004), the same
sequence with other addresses or sizes, or a launch that now fails, that an address was
(AK-UNINIT-005). Then one suspected range after another gets that poison alone, which tells whose
read it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ascendkit.emulator import coverage, extents, guards, verdicts
from ascendkit.emulator.device import Failure, Poison, Region
from ascendkit.emulator.suspects import Suspect, Trial, suspects_of
from ascendkit.emulator.verdicts import Candidate, RawFinding, finding

MOST_SUSPECTS = 16
"""Ranges that are tried one by one; of more, the rest is reported together."""


@dataclass
class Checked:
    """One launch.

    Attributes:
        kernel: its name.
        arguments: number, name and tensor of each tensor argument.
        place: sets where an argument is.
        launch: ``launch(regions, judged=..., **options)``, with options of ``device.launch``;
            ``judged`` chooses the build.
        extra: regions that are no arguments.
        in_place: the kernel reads addresses from memory, so tensors cannot move.
        replay: seed of a random order of the pipes, 0: none. Odd seeds try the opposite signs.
        suspects: after ``run``: reads of bytes that nobody wrote.
    """

    kernel: str
    arguments: Sequence[tuple[int, str, Any]]
    place: Callable[[int, int], None]
    launch: Callable[..., Failure | None]
    extra: Sequence[Region] = ()
    in_place: bool = False
    replay: int = 0
    suspects: int = 0

    @property
    def kind(self) -> int:
        """Of the other poison."""
        return 1 + self.replay % 2

    def run(self) -> tuple[Failure | None, tuple[RawFinding, ...], tuple[Region, ...]]:
        """What stopped it, the findings, and the tensors as the findings' addresses mean them."""
        self.memory = guards.Guarded(self.arguments, in_place=self.in_place)
        for number, *_ in self.arguments:
            self.place(number, self.memory.address(number))
        own = self.memory.regions()
        self.regions = [*self.extra, *own]
        self.views = self.memory.views(len(self.extra))
        self.memory.fill()
        failure = self._again(judged=True, check=True)
        found = verdicts.findings(self.kernel)
        written, unset = (
            [verdicts.written(len(self.extra) + i, r.bytes, unset=u) for i, r in enumerate(own)]
            for u in (False, True)
        )
        contents = self.memory.contents(written)
        if failure is None:
            found += self._overruns(found)
            found += coverage.unwritten(self.kernel, self.memory, written)
            candidates = verdicts.candidates()
            self.suspects = len(candidates)
            if candidates:
                found += self._reached(candidates, contents, written, unset)
        self.memory.finish(contents, written)
        place = self.memory.original
        found = [replace(f, base=place(f.base)) if f.space == "GM" else f for f in found]
        seen = tuple(
            Region(name, t.data_ptr(), extents.extent(t).end - t.data_ptr())
            for _, name, t in self.arguments
        )
        return failure, tuple(sorted(found, key=_order)), (*self.extra, *seen)

    def _again(self, **options: Any) -> Failure | None:
        return self.launch(self.regions, views=self.views, journal=True, **options)

    # ---- around the tensors

    def _overruns(self, found: Sequence[RawFinding]) -> list[RawFinding]:
        """Changed bytes that no finding explains."""
        known = [(f.base, f.base + f.bytes) for f in found if f.code.startswith("AK-BOUNDS")]
        out = []
        for o in self.memory.overruns():
            at = o.address
            if any(low <= at < high for low, high in known):
                continue
            side = (
                f"{o.distance} B before its start"
                if o.offset < 0
                else (f"{o.distance} B past its end" if o.distance else "between its rows")
            )
            detail = f"{o.name}: byte {o.offset} changed, {side}; {o.changed} bytes in all"
            out.append(finding("AK-CANARY-001", self.kernel, base=at, bytes=1, detail=detail))
        return out

    # ---- memory that nobody wrote

    def _reached(
        self,
        candidates: Sequence[Candidate],
        contents: list[Any],
        written: Sequence[Any],
        unset: Sequence[Any],
    ) -> list[RawFinding]:
        self.threads = 0
        before = _Before(contents, verdicts.journal(), written, unset)
        if not (verdicts.order_matters() or self.replay):
            if self._effect(before, Trial(Poison(self.kind))) is None:
                return []
        # Threads may have met in another order, and the judged build is another build: what counts
        # is a difference between two launches of one thread and one build.
        self.threads = 1
        if self._try(Trial(Poison()), judged=False) is not None:
            return []
        contents = self.memory.contents(written)
        before = _Before(contents, verdicts.journal(), written, unset)
        first = self._effect(before, Trial(Poison(self.kind)))
        if first is None:
            return []
        suspects = suspects_of(candidates)
        out = []
        if len(suspects) > 1:
            for s in suspects[:MOST_SUSPECTS]:
                effect = self._effect(before, s.trial(self.kind, len(self.extra)))
                if effect is not None:
                    out.append(self._report(effect, [s]))
        return out or [self._report(first, suspects)]

    def _try(self, trial: Trial, **options: Any) -> Failure | None:
        self.memory.fill(trial.poison.kind, only=trial.only)
        return self._again(threads=self.threads, poison=trial.poison, **options)

    def _effect(self, before: _Before, trial: Trial) -> _Effect | None:
        """What another poison changes; None: nothing."""
        failure = self._try(trial, judged=False)
        if failure is not None:
            return _Effect("AK-UNINIT-005", trial, failure.line, failure.message)
        path = _first_difference(before.journal, verdicts.journal())
        if path is not None:
            site, other, block, core = path
            where = f"block {block} {core}"
            if site != other:
                text = f"{where} goes to line {other} instead of {site}"
                return _Effect("AK-UNINIT-004", trial, site or other, text)
            text = f"{where} gives the instruction another address, size or value"
            return _Effect("AK-UNINIT-005", trial, site, text)
        places = self.memory.differing(before.contents, before.written, before.unset)
        return _Effect("AK-UNINIT-003", trial, address=places[0]) if places else None

    def _report(self, effect: _Effect, suspects: Sequence[Suspect]) -> RawFinding:
        c = suspects[0].candidates[0]
        site, detail, block, core, pipe = effect.site, effect.detail, c.block, c.core, "S"
        if effect.code == "AK-UNINIT-003":
            # Who wrote the byte that differs: once more, with a judge that looks at it.
            verdicts.watch(effect.address)
            self._try(effect.trial, judged=True, check=True)
            verdicts.findings()
            site, block, core, pipe = verdicts.watched() or (0, c.block, c.core, "S")
            name, offset = self.memory.locate(effect.address)
            detail = f"{name}: byte {offset} depends on it"
        what = f"{len(suspects)} ranges together, the first" if len(suspects) > 1 else "range"
        return finding(
            effect.code,
            self.kernel,
            site=site or c.site,
            other_site=c.site,
            block=block,
            other_block=c.block,
            core=core,
            other_core=c.core,
            pipe=pipe,
            other_pipe=c.pipe,
            space=c.space,
            write=effect.code == "AK-UNINIT-003",
            base=c.base,
            bytes=c.end - c.base,
            count=sum(c.count for s in suspects for c in s.candidates),
            detail=f"{detail} ({what} read at line {c.site})",
        )


@dataclass(frozen=True)
class _Before:
    """The launch that others are compared with."""

    contents: list[Any]
    journal: dict[int, Any]
    written: Sequence[Any]
    unset: Sequence[Any]


@dataclass(frozen=True)
class _Effect:
    code: str
    trial: Trial
    site: int = 0
    detail: str = ""
    address: int = 0


def _first_difference(one: dict[int, Any], two: dict[int, Any]) -> tuple[int, int, int, str] | None:
    """Sites in ``one`` and ``two`` where they part, block and core; None: they do not."""
    for key in sorted({*one, *two}):
        a, b = one.get(key, ()), two.get(key, ())
        shared = min(len(a), len(b))
        wrong = [] if shared == 0 else (a[:shared] != b[:shared]).nonzero()[0]
        core = ("AIC", "AIV0", "AIV1")[key & 3]
        if len(wrong):
            i = int(wrong[0])
            return int(a[i]) >> 40, int(b[i]) >> 40, key >> 2, core
        if len(a) != len(b):
            last = a if len(a) > len(b) else b
            at = int(last[shared]) >> 40
            return (at, 0, key >> 2, core) if last is a else (0, at, key >> 2, core)
    return None


def _order(f: RawFinding) -> tuple[Any, ...]:
    return (f.code, f.site, f.other_site, f.block, f.base)
