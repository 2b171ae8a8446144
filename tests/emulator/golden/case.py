"""A case: one form of one instruction, what goes in, what must come out, how it may differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.emulator.golden import draw
from tests.emulator.golden.draw import Draw
from tests.emulator.harness import Bank, Snippet
from tests.emulator.oracle.types import LANES, ulps

ROWS = 12


@dataclass(frozen=True)
class Case:
    """One form of one instruction.

    Attributes:
        name: its name in the instruction table.
        form: what tells it from the other cases of the name.
        body: statements; see ``harness.Snippet``.
        takes, gives: kinds of inputs and outputs.
        expect: the oracle: arrays of ``takes``, what ``raw`` outputs held, and scalar codes, to one
            array an output.
        scalars: lane types of the scalar operands.
        drawers: for inputs that need other values than their kind's default: position -> drawer.
        ulp: distance allowed in the last place, but for the exact results 0, 1 and infinity; 0 is
            bitwise. NaNs equal each other.
        copies: the instruction moves bits: NaNs too must keep theirs.
    """

    name: str
    form: str
    body: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    expect: Callable[..., np.ndarray | tuple[np.ndarray, ...]]
    scalars: tuple[str, ...] = ()
    drawers: dict[int, Draw] = field(default_factory=dict)
    scalar_draw: Draw | None = None
    ulp: int = 0
    copies: bool = False
    rows: int = ROWS

    @property
    def snippet(self) -> Snippet:
        return Snippet(self.body, self.takes, self.gives, self.scalars)

    def inputs(self, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        """Fresh inputs, and fresh contents of memory that is written to."""
        takes = [
            (self.drawers.get(i) or draw.default(kind))(rng, self.rows)
            for i, kind in enumerate(self.takes)
        ]
        before = [
            draw.default(kind)(rng, self.rows) if kind.startswith("raw:") else None
            for kind in self.gives
        ]
        return takes, before

    def scalar_sets(self, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Scalar operands to run with: an ordinary one, special ones, random ones."""
        if not self.scalars:
            return [()]
        columns = []
        for kind in self.scalars:
            drawer = self.scalar_draw or draw.codes(kind)
            values = drawer(rng, 1)[0, : 8 if self.scalar_draw else 4].tolist()
            if self.scalar_draw is None:
                values += rng.choice(draw.specials(LANES[kind]), 4).tolist()
            columns.append(values)
        return [tuple(map(int, row)) for row in zip(*columns)]


def difference(
    case: Case, got: Sequence[np.ndarray], want: Sequence[np.ndarray]
) -> tuple[int, int, int] | None:
    """Output, row and lane of the first difference; None if there is none."""
    for n, (kind, g, w) in enumerate(zip(case.gives, got, want)):
        wrong = g != w
        lane = LANES.get(kind)
        if lane is not None and not case.copies and wrong.any():
            a, b = g[wrong], w[wrong]
            bad = ~(lane.is_nan(a) & lane.is_nan(b))
            if case.ulp:
                pinned = np.isin(lane.values(b), (0.0, 1.0))
                bad &= pinned | (ulps(lane, a, b) > case.ulp)
            wrong[wrong] = bad
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            return n, int(row), int(column)
    return None


def run(
    bank: Bank,
    which: int,
    case: Case,
    takes: Sequence[np.ndarray],
    before: Sequence[np.ndarray | None],
    scalars: Sequence[int],
    *,
    trace: int = 1,
) -> str:
    """Runs and judges; what differs, in words, or nothing."""
    got = bank.run(which, takes, before, scalars, trace=trace)
    held = [b for b in before if b is not None]
    codes = [LANES[t].code.type(s) for t, s in zip(case.scalars, scalars)]
    answer = case.expect(*takes, *held, *codes)
    want = answer if isinstance(answer, tuple) else (answer,)
    at = difference(case, got, want)
    if at is None:
        return ""
    n, row, column = at
    operands = [
        f"{kind}[{column}] = {_show(kind, a[row, column % a.shape[1]])}"
        for kind, a in zip(case.takes, takes)
    ]
    operands += [f"scalar = {_show(t, s)}" for t, s in zip(case.scalars, codes)]
    return (
        f"{case.name} {case.form}: output {n}, row {row}, lane {column}: got "
        f"{_show(case.gives[n], got[n][row, column])}, wanted "
        f"{_show(case.gives[n], want[n][row, column])} from {', '.join(operands)}"
    )


def _show(kind: str, code: np.generic) -> str:
    if kind not in LANES:
        return str(code)
    return f"{LANES[kind].values(np.array([code]))[0]} ({int(code):#x})"
