"""Two calls of an op on the same buffers, and what they may not do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ascendkit.op import Contract
from ascendkit.testing.bits import steps
from ascendkit.testing.compare import bitwise
from ascendkit.testing.memory import POISONS, Guarded, copied, tensors
from ascendkit.testing.verdict import Verdict, merge

if TYPE_CHECKING:
    import torch


class Launches:
    """Calls ``function(*args)`` twice, into guarded and poisoned outputs where it takes ``out=``.

    Args:
        function: the op's public function.
        allocate: the op's outputs for given arguments, or None where it has no such function.
        args: on the device already; used as they are, both times.
        platform: passed on.
        schema: the op's SCHEMA; ``!`` in it marks arguments that are written on purpose.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        allocate: Callable[..., Any] | None,
        args: tuple[Any, ...],
        platform: str,
        schema: str = "",
    ) -> None:
        self.covered = allocate is not None and "out" in inspect.signature(function).parameters
        self.results: list[Any] = []
        self._faults: list[str] = []
        self._mutates = "!" in schema
        self._args, self._before = args, copied(args)
        if self.covered and allocate is not None:
            self._into_guards(function, allocate(*args), args, platform)
        else:
            for _ in POISONS:
                with _poisoned_allocations():
                    self.results.append(copied(function(*args, platform=platform)))
                self._inputs_after()

    def faults(
        self, contract: Contract, judged: Verdict, judge_again: Callable[[Any], Verdict]
    ) -> list[str]:
        """Everything wrong with the two calls, gravest first.

        Args:
            judged: the verdict on the values of the first call.
            judge_again: judges the second, for an op that does not promise equal bits.
        """
        found = list(dict.fromkeys(self._faults))
        if not judged:
            return [*found, judged.message]
        first, second = self.results
        again = _bitwise(second, first) if contract.deterministic else judge_again(second)
        if not again:
            found.append(f"second launch on the same buffers: {again.message}")
        return found

    def _into_guards(
        self, function: Callable[..., Any], template: Any, args: tuple[Any, ...], platform: str
    ) -> None:
        guards = [Guarded(t) for t in tensors(template)]
        many = isinstance(template, (tuple, list))
        out: Any = tuple(g.tensor for g in guards) if many else guards[0].tensor
        left: list[Any] = [None] * len(guards)
        for pattern in POISONS:
            for g in guards:
                g.poison(pattern)
            result = function(*args, out=out, platform=platform)
            same = [r is g.tensor for r, g in zip(tensors(result), guards)]
            if len(same) != len(guards) or not all(same):
                self._faults.append("out=: got another object back, wanted the caller's tensor")
            for i, g in enumerate(guards):
                if g.breach():
                    self._faults.append(f"output[{i}]: {g.breach()}")
                mask = g.unwritten(pattern)
                left[i] = mask if left[i] is None else left[i] & mask
            self.results.append(copied(out))
            self._inputs_after()
        self._faults += [_coverage(i, mask) for i, mask in enumerate(left) if bool(mask.any())]

    def _inputs_after(self) -> None:
        """Book changed inputs; give an op that may change them fresh ones for its next call."""
        if self._mutates:
            for now, then in zip(tensors(self._args), tensors(self._before)):
                now.copy_(then)
            return
        verdict = _bitwise(self._args, self._before)
        if not verdict:
            self._faults.append(f"inputs changed: {verdict.message}")


def layout(got: Any, told: Any) -> str:
    """Where results differ in dtype, shape or strides from what ``allocate`` told; empty if not."""
    ours, theirs = tensors(got), tensors(told)
    if len(ours) != len(theirs):
        return f"allocate gives {len(theirs)} outputs, the call {len(ours)}"
    for i, (g, t) in enumerate(zip(ours, theirs)):
        a, b = ((x.dtype, tuple(x.shape), steps(x)) for x in (g, t))
        if a != b:
            return f"output[{i}]: dtype, shape, strides: got {a}, allocate says {b}"
    return ""


def _coverage(i: int, mask: torch.Tensor) -> str:
    at = tuple(int(x) for x in mask.nonzero()[0])
    return f"output[{i}]: {int(mask.sum())} of {mask.numel()} never written, the first at {at}"


def _bitwise(got: Any, want: Any) -> Verdict:
    pairs = enumerate(zip(tensors(got), tensors(want)))
    return merge(bitwise(g, w, f"tensor {i}") for i, (g, w) in pairs)


@contextmanager
def _poisoned_allocations() -> Iterator[None]:
    """torch.empty gives NaN and largest integers, so that what is not written shows in values."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)
