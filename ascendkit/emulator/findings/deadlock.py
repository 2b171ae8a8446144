"""Of a deadlock: the wait that holds all others up, and the set that is missing.

The runtime's message is a wait graph, a line for each pipe that waits. A wait whose signal would
come from a pipe that waits itself is only held up; what is left is a root. The source then tells
which set was meant: one that names another id or the pipes the wrong way round, one that is reached
too late, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WAIT = re.compile(r"^  (block \d+ \w+?)(?: PIPE_(\w+))? \(line (\d+)\) waits for (.*)$", re.M)
_EVENT = re.compile(r"event (\d+) from PIPE_(\w+) to PIPE_(\w+)")
_FLAG = re.compile(r"asc_sync_(\w+)_wait flag (\d+)")
_LOCK = re.compile(r"\block (\d+)")
_NOTIFY = re.compile(
    r"asc_sync_notify\(PIPE_(\w+), PIPE_(\w+), (?:static_cast<event_t>)?\(?\(*(.*?)\)*\);"
)
_ARRIVE = re.compile(r"asc_sync_(\w+)_arrive\(PIPE_(\w+), (.*?)\);")
_UNLOCK = re.compile(r"asc_unlock\(PIPE_(\w+), (\d+)")
_RUNS_ON = {
    "MTE2": r"asc_copy_gm2|asc_fill_l1",
    "MTE3": r"asc_copy_ub2",
    "MTE1": r"asc_copy_l12",
    "V": r"\w_simd_vf_\d+\(|asc_vf_call<",
    "M": r"asc_mmad|ascend_gemm",
    "FIX": r"asc_copy_l0c2",
}
_OTHERS = {
    "intra": "the other core of the block",
    "block": "the other cores of the block",
    "subblock": "both vector cores",
    "inter": "every core of the launch",
}


@dataclass(frozen=True)
class Wait:
    """One line of the graph: event ``id`` from ``source``, flag ``id`` of ``scope``, or a lock."""

    core: str
    pipe: str
    line: int
    id: int
    source: str = ""
    scope: str = ""

    @property
    def what(self) -> str:
        """What is waited for."""
        if self.source:
            return f"event {self.id} from PIPE_{self.source} to PIPE_{self.pipe}"
        return f"lock {self.id}" if self.scope == "lock" else f"{self.scope} flag {self.id}"


@dataclass(frozen=True)
class Missing:
    """The root of a deadlock: its wait, the line of the set that was meant (0: none), the cure."""

    wait: Wait
    line: int
    cure: str


def missing(message: str, rows: Sequence[str]) -> Missing | None:
    """What the first root of the graph lacks; None if the graph has no event and no flag."""
    waits = list(_waits(message))
    held = {(w.core, w.pipe) for w in waits}
    roots = [w for w in waits if not w.source or (w.core, w.source) not in held] or waits
    if not roots:
        return None
    # A flag that another core would signal if its own event came is no root either.
    wait = next((w for w in roots if w.source), roots[0])
    of = _of_event if wait.source else _of_lock if wait.scope == "lock" else _of_flag
    return Missing(wait, *of(wait, rows))


def _waits(message: str) -> Iterator[Wait]:
    for core, pipe, line, what in _WAIT.findall(message):
        event, flag, lock = _EVENT.search(what), _FLAG.search(what), _LOCK.search(what)
        if event:
            yield Wait(core, event[3], int(line), int(event[1]), source=event[2])
        elif flag:
            yield Wait(core, pipe or "S", int(line), int(flag[2]), scope=flag[1])
        elif lock:
            yield Wait(core, pipe or "S", int(line), int(lock[1]), scope="lock")


def _of_event(wait: Wait, rows: Sequence[str]) -> tuple[int, str]:
    call = f"asc_sync_notify(PIPE_{wait.source}, PIPE_{wait.pipe}, {wait.id})"
    sets = [
        (n, a, b, text.strip())
        for n, row in enumerate(rows, 1)
        for a, b, text in _NOTIFY.findall(row)
    ]
    mine = [(n, text) for n, a, b, text in sets if (a, b) == (wait.source, wait.pipe)]
    same = [n for n, text in mine if text == str(wait.id) or not text.isdigit()]
    if same:
        return same[0], _too_late(wait, same[0], f"the set of line {same[0]}")
    if mine:
        n, text = mine[0]
        return (
            n,
            f"Line {n} sets event {text} of these pipes, line {wait.line} waits for {wait.id}: "
            "use one id on both sides.",
        )
    swapped = [n for n, a, b, _ in sets if (b, a) == (wait.source, wait.pipe)]
    if swapped:
        n = swapped[0]
        return n, f"Line {n} names the pipes the other way round: write {call} there."
    return 0, f"{call} is missing: {_behind(wait, rows)}."


def _of_flag(wait: Wait, rows: Sequence[str]) -> tuple[int, str]:
    sets = [
        (n, text.strip())
        for n, row in enumerate(rows, 1)
        for scope, _, text in _ARRIVE.findall(row)
        if scope == wait.scope
    ]
    same = [n for n, text in sets if not text.isdigit() or int(text) % 16 == wait.id % 16]
    if same:
        who = _OTHERS.get(wait.scope, "the other side")
        return same[0], _too_late(wait, same[0], f"the signal of line {same[0]} from {who}")
    if sets:
        n, text = sets[0]
        return (
            n,
            f"Line {n} signals {wait.scope} flag {text}, line {wait.line} waits for "
            f"{wait.id}: use one id on both sides.",
        )
    who = _OTHERS.get(wait.scope, "the other side")
    return 0, (
        f"asc_sync_{wait.scope}_arrive(PIPE_..., {wait.id}) is missing: put it on {who}, on the "
        f"pipe that makes what line {wait.line} waits for, behind the instruction that does."
    )


def _of_lock(wait: Wait, rows: Sequence[str]) -> tuple[int, str]:
    found = [
        n
        for n, row in enumerate(rows, 1)
        for _, number in _UNLOCK.findall(row)
        if int(number) == wait.id
    ]
    if found:
        return found[0], _too_late(wait, found[0], f"the unlock of line {found[0]}")
    return 0, (
        f"asc_unlock(PIPE_..., {wait.id}) is missing: put it on the pipe that took the lock "
        "before, behind what the lock protects."
    )


def _too_late(wait: Wait, line: int, what: str) -> str:
    if line > wait.line:
        return (
            f"Line {wait.line} waits for {what}, which comes later: move it before the wait, or "
            "set once before the loop."
        )
    return (
        f"Line {wait.line} waits once more than {what} is reached: take the wait out of the turn "
        "that has no set, or set once more (a branch around one of the two, or a first turn)."
    )


def _behind(wait: Wait, rows: Sequence[str]) -> str:
    """Where a missing set belongs: behind what the source pipe did last before the wait."""
    if wait.source in _RUNS_ON:
        pattern = re.compile(_RUNS_ON[wait.source])
        before = range(min(wait.line, len(rows)) - 1, 0, -1)
        for n in (*before, *range(wait.line + 1, len(rows) + 1)):
            row = rows[n - 1].strip()
            if pattern.search(row) and not row.startswith(("__simd_vf__", "__simt_vf__")):
                return f"put it behind line {n}, which PIPE_{wait.source} executes"
            if 'extern "C"' in row and n < wait.line:
                break
    return f"put it behind what PIPE_{wait.source} does for line {wait.line}"
