"""The sync advisor: which synchronisation of a correct kernel could be left out.

Every set is linked to the waits that took it, at run time; what is linked is tried together: the
launch is repeated without any of it, checked. If the judges find no race and no fault of the
protocol, and the outputs keep their bits in program order and in random legal orders, nothing in
this launch needs it (AK-ADVICE-001). The judges' verdict holds for all schedules of the same
control flow; another input may take another path. Each advice stands alone: two of them may rely on
each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ascendkit.emulator import records
from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.mutants import SIMT, Mutant, instruction
from ascendkit.emulator.records import PIPES, Record
from ascendkit.emulator.repeat import Repeated
from ascendkit.emulator.verdicts import RawFinding

CODE = "AK-ADVICE-001"
REPLAYS = 8


@dataclass(frozen=True)
class Group:
    """Synchronisation that belongs together.

    Attributes:
        parts: its instructions.
        executions: how often they were executed in the launch.
        held: pipes that wait in it, a name each.
    """

    parts: tuple[Mutant, ...]
    executions: int
    held: tuple[str, ...]

    def __str__(self) -> str:
        lines = ", ".join(str(n) for n in sorted({p.site for p in self.parts}))
        names = ", ".join(sorted({p.op for p in self.parts}))
        return f"{names} (line {lines})"


@dataclass(frozen=True)
class Advice:
    """A group without which nothing changes."""

    group: Group

    def finding(self) -> RawFinding:
        """As findings go: the line that waits, and the line that signals."""
        parts, group = self.group.parts, self.group
        wait = next((p for p in parts if _holds(p.op)), parts[0])
        other = next((p for p in parts if p.site != wait.site or p.op != wait.op), wait)
        held = ", ".join(group.held)
        detail = f"{group}: executed {group.executions} times, holds {held}"
        return RawFinding(
            code=CODE,
            site=wait.site,
            other_site=other.site if other is not wait else 0,
            block=0,
            other_block=0,
            core="",
            other_core="",
            pipe=_held_pipe(wait),
            other_pipe=other.pipe or "V",
            space="GM",
            write=False,
            other_write=False,
            this_order=True,
            base=0,
            bytes=0,
            count=group.executions,
            detail=detail,
        )


def advise(
    kernel_or_source: Any, *args: Any, grid: int | None = None, replays: int = REPLAYS, **more: Any
) -> list[Advice]:
    """Which synchronisation of one launch is redundant.

    Args:
        kernel_or_source, args, grid: as for ``run``, or a ``Repeated`` launch alone; tensors keep
            their contents.
        replays: random legal orders whose outputs must not change either.
        more: ``cores`` and ``name``, as for ``run``.

    Raises:
        ValueError: the kernel has findings as it is: cure those first.
        EmulatorError: the launch fails.
    """
    launch = kernel_or_source
    if not isinstance(launch, Repeated):
        launch = Repeated(kernel_or_source, args, grid=grid, **more)
    wanted = launch.launch(check=True)
    before = _findings(launch)
    if before:
        codes = ", ".join(sorted({code for code, *_ in before}))
        raise ValueError(f"kernel: got findings ({codes}), wanted a kernel without any")
    records.read()
    launch.launch(trace=2)
    found = [
        Advice(group)
        for group in groups(records.read())
        if _redundant(launch, group, wanted, replays)
    ]
    launch.restore()
    return found


def _redundant(launch: Repeated, group: Group, wanted: tuple[bytes, ...], replays: int) -> bool:
    try:
        if launch.launch(check=True, mutate=group.parts) != wanted or _findings(launch):
            return False
        orders = range(1, replays + 1)
        return all(
            launch.launch(trace=1, replay=seed, mutate=group.parts) == wanted for seed in orders
        )
    except EmulatorError:
        return False


def _findings(launch: Repeated) -> set[tuple[str, int, int]]:
    found = launch.findings
    return {(f.code, f.site, f.other_site) for f in found if not f.code.startswith("AK-ADVICE")}


def groups(trace: Iterable[Record]) -> list[Group]:
    """The synchronisation of a trace, linked: sets with the waits that took them, locks with
    unlocks of their id, arrivals with waits; barriers alone."""
    links = _Links()
    executions: dict[Mutant, int] = defaultdict(int)
    sets: dict[object, list[Mutant]] = defaultdict(list)
    taken: dict[object, int] = defaultdict(int)
    for r in trace:
        part = instruction(r)
        if part is None:
            continue
        executions[part] += 1
        links.add(part)
        core = (r.block, r.core)
        if r.name == "asc_sync_notify":
            sets[core, part.pipe, part.other, part.id].append(part)
        elif r.name == "asc_sync_wait":
            key = (core, part.pipe, part.other, part.id)
            if taken[key] < len(sets[key]):
                links.join(part, sets[key][taken[key]])
            taken[key] += 1
        elif r.name in ("asc_lock", "asc_unlock"):
            links.join(part, sets.setdefault(("lock", part.id), [part])[0])
        elif r.name.endswith(("_arrive", "_wait")):
            scope = r.name.rsplit("_", 1)[0]
            links.join(part, sets.setdefault((scope, part.id % 16), [part])[0])
    found = []
    for parts in links.groups():
        held = tuple(sorted({_held_pipe(p) for p in parts if _holds(p.op)}))
        found.append(Group(tuple(parts), sum(executions[p] for p in parts), held))
    return found


class _Links:
    """Sets that grow together."""

    def __init__(self) -> None:
        self._parent: dict[Mutant, Mutant] = {}

    def add(self, part: Mutant) -> None:
        self._parent.setdefault(part, part)

    def join(self, a: Mutant, b: Mutant) -> None:
        self.add(b)
        self._parent[self._root(a)] = self._root(b)

    def _root(self, part: Mutant) -> Mutant:
        while self._parent[part] != part:
            part = self._parent[part]
        return part

    def groups(self) -> list[list[Mutant]]:
        found: dict[Mutant, list[Mutant]] = defaultdict(list)
        for part in sorted(self._parent):
            found[self._root(part)].append(part)
        return sorted(found.values())


def _holds(op: str) -> bool:
    """Whether an instruction makes somebody wait."""
    return op.endswith("_wait") or op in ("asc_lock", "asc_sync", "asc_sync_pipe", *SIMT)


def _held_pipe(part: Mutant) -> str:
    if part.op == "asc_sync_wait":
        return part.other
    return part.pipe if part.pipe in PIPES else "V"


def report(launch_text: str, advice: Sequence[Advice]) -> str:
    """For people: the lines of the source and what they cost."""
    rows = launch_text.splitlines()
    out = []
    for one in advice:
        out.append(f"{CODE}: {one.finding().detail}; nothing in this launch needs it")
        for site in sorted({p.site for p in one.group.parts}):
            text = rows[site - 1].strip() if 0 < site <= len(rows) else ""
            out.append(f"  line {site}: {text}")
    return "\n".join(out) or "nothing to leave out"
