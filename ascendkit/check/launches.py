"""Two calls of an op on the same buffers, and what they may not do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from ascendkit.op import Contract
from ascendkit.schema import parse
from ascendkit.testing.bits import steps
from ascendkit.testing.compare import bitwise
from ascendkit.testing.memory import POISONS, Guarded, copied, tensors
from ascendkit.testing.verdict import Verdict, merge

if TYPE_CHECKING:
    import torch


class Launches:
    """Calls ``function(*args)`` twice, into poisoned outputs between guards.

    The outputs are given as ``out=`` where the function takes it; elsewhere they take the place of
    what the op's ``allocate`` gives. A reference without ``out=`` makes its own.

    Args:
        function: the op's public function.
        module: the op's package, for its ``allocate`` and ``SCHEMA``; ``!`` in the schema marks
            arguments that are written on purpose. They count as results, after what is returned.
        args: on the device already; used as they are, both times.
        platform: passed on.
    """

    def __init__(
        self, function: Callable[..., Any], module: Any, args: tuple[Any, ...], platform: str
    ) -> None:
        self.results: list[Any] = []
        self._faults: list[str] = []
        self._schema = parse(getattr(module, "SCHEMA", ""))
        self._args, self._before = args, copied(args)
        allocate = getattr(module, "allocate", None)
        takes_out = "out" in inspect.signature(function).parameters
        guards: list[Guarded] = []
        left: list[torch.Tensor] = []
        out: Any = None
        if allocate is not None and takes_out:
            out = _guarded(allocate(*args), guards)
        for pattern in POISONS:
            if out is not None:
                for guard in guards:
                    guard.poison(pattern)
                result = function(*args, out=out, platform=platform)
                if [id(t) for t in tensors(result)] != [id(g.tensor) for g in guards]:
                    self._faults.append("out=: got another object back, wanted the caller's tensor")
            else:
                guards = []
                with _poisoned_allocations(), _guarded_allocate(module, guards, pattern):
                    result = function(*args, platform=platform)
            self._faults += [
                f"output[{i}]: {g.breach()}" for i, g in enumerate(guards) if g.breach()
            ]
            masks = [g.unwritten(pattern) for g in guards]
            left = [a & b for a, b in zip(left, masks)] if pattern != POISONS[0] else masks
            self.results.append(copied(self._schema.results(result, args)))
            self._inputs_after()
        self.covered = bool(guards)
        self._faults += [_coverage(i, mask) for i, mask in enumerate(left) if bool(mask.any())]

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

    def _inputs_after(self) -> None:
        """Book changed inputs; renew those the op writes on purpose for its next call."""
        written = (self._schema.written(a) for a in (self._args, self._before))
        for now, then in zip(*map(tensors, written)):
            now.copy_(then)
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


def _guarded(template: Any, guards: list[Guarded]) -> Any:
    """The same structure with guarded tensors, which are added to ``guards``."""
    import torch

    if isinstance(template, (tuple, list)):
        return type(template)([_guarded(t, guards) for t in template])
    if not isinstance(template, torch.Tensor):
        return template
    guards.append(Guarded(template))
    return guards[-1].tensor


@contextmanager
def _guarded_allocate(module: Any, guards: list[Guarded], pattern: int) -> Iterator[None]:
    """Inside, the op's own ``allocate`` gives guarded and poisoned outputs."""
    allocate = getattr(module, "allocate", None)

    def instead(*args: Any, **kwargs: Any) -> Any:
        first = len(guards)
        made = _guarded(allocate(*args, **kwargs), guards) if allocate is not None else None
        for guard in guards[first:]:
            guard.poison(pattern)
        return made

    with patch.object(module, "allocate", instead) if allocate is not None else nullcontext():
        yield


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
