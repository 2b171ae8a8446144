"""The one abstraction: an Op is a folder, and this record is what the folder says.

======================  ==========================================================================
file                    what it gives
======================  ==========================================================================
``__init__.py``         public function, ``SCHEMA``, ``allocate`` (outputs; also the fake kernel)
``reference.py``        ``reference(*args)``: obvious torch, the definition of right
``oracle.py``           ``oracle(*args)`` (NumPy in and out, narrow floats as float32) and/or
                        ``invariants(result, *args)``; shares no code with what it judges
``cost.py``             ``cost(**params) -> Cost``: pure Python
``cases.py``            ``CONTRACT``, ``cases()``, ``inputs(case)``
``cuda.py``             ``supports(case) -> Support``, ``run(*args, out=...)``
``ascend.py``           the same for the NPU and, unchanged, the emulator
``backward.py``         ``setup_context``, ``backward``: the gradient (see ``ascendkit.library``)
======================  ==========================================================================

Ops with several outputs, optional ones, or arguments they write: see ``ascendkit.schema`` and
``ascendkit.dispatch``.

A collective case has ``ranks > 1``: ``inputs`` gives one tuple of arguments a rank; ``reference``
and ``oracle`` take the list of them and give the list of results.

What an op can do is derived from the files that exist, never claimed.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ascendkit.cost import Cost
from ascendkit.errors import bad_value, unknown

LEVELS = ("smoke", "core", "full")
"""How much of a case list runs; each level includes the ones before it."""

FILE_OF_PLATFORM = {
    "reference": "reference",
    "emulator": "ascend",
    "ascend": "ascend",
    "cuda": "cuda",
}


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """A budget asks thousands of times for the parameters of a few formulas."""
    return inspect.signature(function).parameters


@dataclass(frozen=True)
class Support:
    """Whether an implementation can serve a case, and if not, why."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Case:
    """Named inputs of an op: parameters only, tensors are drawn from them by ``inputs``.

    Args:
        name: unique within the op.
        params: shape and data parameters, JSON-able.
        level: first level at which the case runs.
        ranks: processes a collective case needs; 1 for everything else.
        bench: also timed by the bandwidth loop.
        error: name of the exception class the call must raise, for bad input.
    """

    name: str
    params: Mapping[str, Any]
    level: str = "smoke"
    ranks: int = 1
    bench: bool = False
    error: str = ""


@dataclass(frozen=True)
class Contract:
    """How results are compared, and the rules a caller may rely on.

    Args:
        compare: ``bitwise``, ``ulp``, ``calc_diff`` or ``set_equal``.
        limit: largest ulp distance or calc_diff allowed.
        deterministic: equal inputs give equal bits on one platform.
        rules: sentences on ties, order, NaN, padding.
        oracle: what judges the reference itself.
        source: where the definition of the op comes from.
    """

    compare: str
    limit: float = 0.0
    deterministic: bool = True
    rules: tuple[str, ...] = ()
    oracle: str = ""
    source: str = ""


@dataclass(frozen=True)
class Op:
    """One op. Loading the record reads file names only; modules load on first use."""

    name: str
    component: str
    folder: Path
    files: frozenset[str] = field(repr=False)

    @property
    def stem(self) -> str:
        """The op's own name: the last part of its dotted name."""
        return self.name.rpartition(".")[2]

    def has(self, stem: str) -> bool:
        """Whether the folder holds ``stem.py``."""
        return stem in self.files

    def load(self, stem: str = "") -> ModuleType:
        """Import ``stem.py`` of the folder, or the folder itself."""
        if stem and not self.has(stem):
            raise bad_value(
                f"op {self.name}", f"{stem}.py", f"one of {', '.join(sorted(self.files))}"
            )
        return importlib.import_module(f"{self.name}.{stem}" if stem else self.name)

    # -- counting ---------------------------------------------------------------------------------
    def cost(self, **params: Any) -> Cost:
        """Cost of one call; ValueError for a parameter the formula does not know or needs."""
        fn = self.load("cost").cost
        legal = _parameters(fn)
        for name in params:
            if name not in legal:
                raise unknown(f"{self.name}.cost parameter", name, legal)
        missing = [
            n for n, p in legal.items() if p.default is inspect.Parameter.empty and n not in params
        ]
        if missing:
            raise bad_value(f"{self.name}.cost", sorted(params), f"also {', '.join(missing)}")
        got: Cost = fn(**params)
        return got

    # -- checking ---------------------------------------------------------------------------------
    @property
    def contract(self) -> Contract:
        """The op's contract."""
        got: Contract = self.load("cases").CONTRACT
        return got

    def cases(self, level: str = "full") -> Iterator[Case]:
        """Cases up to ``level``, in the op's order."""
        if level not in LEVELS:
            raise unknown("level", level, LEVELS)
        wanted = LEVELS[: LEVELS.index(level) + 1]
        for case in self.load("cases").cases():
            if case.level in wanted:
                yield case

    def inputs(self, case: Case, seed: int) -> tuple[Any, ...]:
        """Arguments of the public function for ``case``, CPU tensors, drawn from ``seed``."""
        got: tuple[Any, ...] = self.load("cases").inputs(case, seed)
        return got

    def platforms(self) -> tuple[str, ...]:
        """Platforms the folder has a file for."""
        return tuple(p for p, stem in FILE_OF_PLATFORM.items() if self.has(stem))

    def supports(self, platform: str, case: Case) -> Support:
        """Whether ``platform`` can serve ``case``."""
        if platform not in FILE_OF_PLATFORM:
            raise unknown("platform", platform, FILE_OF_PLATFORM)
        stem = FILE_OF_PLATFORM[platform]
        if not self.has(stem):
            return Support(False, f"{self.name} has no {stem}.py")
        if platform == "reference":
            return Support(True)
        got: Support = self.load(stem).supports(case)
        return got

    def states(self) -> tuple[str, ...]:
        """What the folder shows: costed, referenced, judged, implemented on ..."""
        marks = {
            "cost": "costed",
            "reference": "referenced",
            "oracle": "judged",
            "ascend": "ascend",
            "cuda": "cuda",
        }
        return tuple(mark for stem, mark in marks.items() if self.has(stem))
