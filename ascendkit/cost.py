"""What an op costs, counted once, next to the op: FLOPs by unit and dtype, bytes by level.

An op's ``cost.py`` builds a :class:`Cost` from formulas kept as text. The text is what is evaluated
and what ``explain`` prints, so the two cannot drift apart. Minimum bytes count each input read once
and each output written once. Planned bytes are what a tiled kernel moves through a level (L2,
on-chip), so they depend on tile sizes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType
from typing import Literal, TypeVar

from ascendkit.errors import bad_value

K = TypeVar("K", bound=Hashable)
Kind = Literal["flop", "read", "write", "link"]

UNITS = ("cube", "vector")
"""Who computes: matrix units (cube, tensor cores) or vector/SIMT lanes."""
LEVELS = ("hbm", "l2", "onchip")
"""Where bytes move: device memory, L2, and on-chip buffers (L1/UB/L0 or shared memory)."""
LINKS = ("scaleup", "scaleout")
"""Between ranks: the fast domain (NVLink, UB mesh) and the network beyond it."""

_functions = {"ceil": math.ceil, "min": min, "max": max, "comb": math.comb, "log2": math.log2}


@lru_cache(maxsize=4096)
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<cost formula>", "eval")


def evaluate(formula: str, names: Mapping[str, float]) -> float:
    """Value of one formula. Formulas are literals of this project, never input of a user."""
    return float(eval(_compiled(formula), {"__builtins__": {}, **_functions}, dict(names)))


def _checked(what: str, formula: str, names: Mapping[str, float]) -> float:
    """The value of a term; ValueError naming the op, the term and the parameter that is no size."""
    for name in _compiled(formula).co_names:
        got = names.get(name)
        if isinstance(got, (int, float)) and not 0 <= got < math.inf:
            wanted = f"a finite number of at least 0 in {what!r}: {formula}"
            raise bad_value(f"{_op_here()} {name}", got, wanted, 1)
    try:
        value = evaluate(formula, names)
    except ArithmeticError as e:
        raise ValueError(f"{_op_here()}, {what!r}: {formula}: {e}") from None
    if not 0 <= value < math.inf:
        raise bad_value(
            f"{_op_here()}, {what!r}: {formula}", value, "a finite amount of at least 0"
        )
    return value


def _op_here() -> str:
    """The op whose ``cost.py`` is running: only errors ask."""
    frame = inspect.currentframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name != __name__ and name.endswith(".cost"):
            return name.removesuffix(".cost")
        frame = frame.f_back
    return "cost"


@dataclass(frozen=True)
class Term:
    """One line of a cost: what, where, the formula, and its value."""

    kind: Kind
    where: str
    what: str
    formula: str
    value: float
    dtype: str = ""
    planned: bool = False
    kept: bool = False
    state: bool = False


@dataclass(frozen=True)
class Cost:
    """Work of one call of an op, for one rank.

    ``params`` are the shape parameters; ``terms`` the counted lines. ``launches`` is the number of
    device kernels the op needs.
    """

    params: Mapping[str, float]
    terms: tuple[Term, ...] = ()
    launches: int = 1
    notes: tuple[str, ...] = field(default=())

    def _add(
        self,
        kind: Kind,
        where: str,
        what: str,
        formula: str,
        dtype: str = "",
        planned: bool = False,
        kept: bool = False,
        state: bool = False,
    ) -> Cost:
        value = _checked(what, formula, self.params)
        if not value:
            return self
        term = Term(kind, where, what, formula, value, dtype, planned, kept, state)
        return replace(self, terms=(*self.terms, term))

    def flop(self, unit: str, dtype: str, what: str, formula: str) -> Cost:
        """Add floating-point (or integer) operations; a fused multiply-add counts as two."""
        return self._add("flop", unit, what, formula, dtype)

    def read(
        self,
        what: str,
        formula: str,
        level: str = "hbm",
        planned: bool = False,
        kept: bool = False,
        state: bool = False,
    ) -> Cost:
        """Add bytes read from ``level``.

        Args:
            kept: the backward pass needs them.
            state: weights or cache entries, which outlive the step, not activations.
        """
        return self._add("read", level, what, formula, planned=planned, kept=kept, state=state)

    def write(
        self,
        what: str,
        formula: str,
        level: str = "hbm",
        planned: bool = False,
        state: bool = False,
    ) -> Cost:
        """Add bytes written to ``level``; ``state`` as for :meth:`read`."""
        return self._add("write", level, what, formula, planned=planned, state=state)

    def link(self, what: str, formula: str, link: str = "scaleup") -> Cost:
        """Add bytes this rank sends over ``link``."""
        return self._add("link", link, what, formula)

    def flops(self) -> dict[tuple[str, str], float]:
        """FLOPs by (unit, dtype)."""
        return _total(((t.where, t.dtype), t.value) for t in self.terms if t.kind == "flop")

    def minimum_bytes(self) -> float:
        """Bytes of device memory: each input once, each output once."""
        return sum(
            t.value
            for t in self.terms
            if t.kind in ("read", "write") and t.where == "hbm" and not t.planned
        )

    def planned_bytes(self) -> dict[str, float]:
        """Bytes by level as a tiled kernel moves them.

        A level without a planned term of its own falls back to the minimum: what leaves device
        memory passes every level at least once.
        """
        planned = _total(
            (t.where, t.value) for t in self.terms if t.kind in ("read", "write") and t.planned
        )
        least = self.minimum_bytes()
        return {level: planned.get(level, least) for level in LEVELS}

    def kept_bytes(self) -> float:
        """Bytes of activations that training keeps from this call for its backward pass."""
        return sum(t.value for t in self.terms if t.kept)

    def activation_bytes(self) -> float:
        """Bytes of device memory that hold this call's inputs and outputs, without any state."""
        return sum(
            t.value
            for t in self.terms
            if t.kind in ("read", "write") and t.where == "hbm" and not t.planned and not t.state
        )

    def link_bytes(self) -> dict[str, float]:
        """Bytes sent by this rank, by link."""
        return _total((t.where, t.value) for t in self.terms if t.kind == "link")


def _total(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    out: dict[K, float] = {}
    for key, value in pairs:
        out[key] = out.get(key, 0.0) + value
    return out
