"""What an op's ``SCHEMA`` says: its arguments, which of them it writes, what it returns.

``SCHEMA`` is a signature in torch's language. ``!`` marks an argument the op writes:

- ``(Tensor x, int k) -> Tensor``: one output;
- ``(Tensor x) -> (Tensor, Tensor)``: several; ``allocate``, ``reference`` and ``out=`` are tuples;
- ``(Tensor(a!) x, int k) -> ()``: works in place; ``allocate`` and ``reference`` give None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True)
class Schema:
    """``SCHEMA`` in parts.

    Args:
        arguments: declarations in order, such as ``Tensor(a!) x``.
        returns: types in order, such as ``Tensor``; empty for an op that works in place.
    """

    arguments: tuple[str, ...]
    returns: tuple[str, ...]

    @property
    def mutated(self) -> tuple[int, ...]:
        """Positions of the arguments the op writes."""
        return tuple(i for i, text in enumerate(self.arguments) if "!" in text)

    @property
    def outs(self) -> tuple[str, ...]:
        """Declarations of the outputs as arguments; those of several may be None."""
        if len(self.returns) == 1:
            return ("Tensor(out!) out",)
        return tuple(f"Tensor(out{i}!)? out{i}" for i in range(len(self.returns)))

    def functional(self) -> str:
        """The schema of the registered op: arguments and a platform, outputs returned."""
        returns = ", ".join(self.returns)
        one = len(self.returns) == 1
        return f"({', '.join((*self.arguments, 'str platform'))}) -> " + (
            returns if one else f"({returns})"
        )

    def mutating(self) -> str:
        """The schema of its ``out=`` overload."""
        return f"({', '.join((*self.arguments, *self.outs, 'str platform'))}) -> ()"

    def written(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Those of ``args`` the op writes; an argument left to its default is none of them."""
        return tuple(args[i] for i in self.mutated if i < len(args))

    def results(self, returned: Any, args: Sequence[Any]) -> Any:
        """All a call leaves behind: what it returned, and after that the arguments it wrote."""
        return (*outputs(returned), *self.written(args)) if self.mutated else returned


@lru_cache(maxsize=512)
def parse(schema: str) -> Schema:
    """The parts of ``schema``."""
    arguments, _, returns = schema.partition("->")
    return Schema(_listed(arguments), _listed(returns))


def names(declarations: Iterable[str]) -> tuple[str, ...]:
    """Names of declared arguments."""
    return tuple(d.partition("=")[0].split()[-1] for d in declarations)


def outputs(out: Any) -> tuple[Any, ...]:
    """Outputs in order, as a tuple: of one, of several, of none (None)."""
    if out is None:
        return ()
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def _listed(text: str) -> tuple[str, ...]:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return tuple(part.strip() for part in text.split(",") if part.strip())
