"""The corpus of the mutation suite: small correct kernels of four families, and their launches.

A case is a function that launches kernels with inputs of its own; ``launches()`` notes every
launch, so that it can be repeated with other options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch

from ascendkit.emulator import extents, lowered
from ascendkit.emulator import fresh as unwritten
from ascendkit.emulator.kernel import EmulatedKernel
from ascendkit.emulator.source import CUBE, VECTOR

FAMILIES = ("vector", "cube", "mixed", "simt")


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel, with its arguments as they were before it."""

    name: str
    kernel: EmulatedKernel
    args: tuple[Any, ...]
    before: tuple[torch.Tensor | None, ...]
    grid: int
    cores: int
    function: Any = None
    """The TileLang function that the source was lowered from, if it was."""
    configs: Any = None

    @property
    def family(self) -> str:
        """vector, cube, mixed or simt; a kernel with SIMT functions is simt."""
        if "__simt_vf__" in self.kernel.text:
            return "simt"
        kind = self.kernel.kernel.kind
        return "vector" if kind == VECTOR else "cube" if kind == CUBE else "mixed"

    def run(self, *, fresh: Sequence[int] = (), **options: Any) -> tuple[bytes, ...]:
        """Launch with the same arguments again; returns the bytes of every tensor afterwards.
        ``fresh`` are arguments that hold nothing before, as outputs do that TileLang allocates."""
        for number, (arg, start) in enumerate(zip(self.args, self.before)):
            if start is not None:
                _bytes(arg).copy_(start)
            if number in fresh:
                unwritten.mark(arg, allocated=True)
        options = {"threads": 1, "cores": self.cores, "timeout_s": 20.0} | options
        self.kernel.launch(self.args, grid=self.grid, **options)
        return self.outputs()

    def spans(self) -> list[Any]:
        """Where the tensors lie."""
        from tests.emulator.mutation.memory import Span

        return [
            Span(a.data_ptr(), extents.extent(a).end - a.data_ptr())
            for a, b in zip(self.args, self.before)
            if b is not None
        ]

    def outputs(self) -> tuple[bytes, ...]:
        """The bytes of every tensor argument as they are now."""
        return tuple(
            _bytes(a).numpy().tobytes() if b is not None else b""
            for a, b in zip(self.args, self.before)
        )


@contextmanager
def noted(name: str, found: list[Launch]) -> Iterator[None]:
    """Adds the launches inside the block to ``found``."""
    original, lower = EmulatedKernel.launch, lowered.lower
    functions: dict[str, tuple[Any, Any]] = {}

    def lowering(function: Any, configs: Any = None) -> Any:
        entry = lower(function, configs)
        functions[entry["source"]] = function, configs
        return entry

    def launch(self: EmulatedKernel, args: Any, *, grid: int, **options: Any) -> float:
        before = [_bytes(a).clone() if isinstance(a, torch.Tensor) else None for a in args]
        seconds = original(self, args, grid=grid, **options)
        if grid:
            number = sum(x.name.split("#")[0] == name for x in found)
            full = f"{name}#{number + 1}" if number else name
            cores = options.get("cores", 32)
            origin = functions.get(self.text, (None, None))
            found.append(Launch(full, self, tuple(args), tuple(before), grid, cores, *origin))
        return seconds

    with (
        patch.object(EmulatedKernel, "launch", launch),
        patch.object(lowered, "lower", lowering),
    ):
        yield


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage behind a tensor."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def launches(cases: dict[str, Callable[[], object]]) -> list[Launch]:
    """Every launch of the cases, the second of a case called ``name#2``."""
    found: list[Launch] = []
    for name, case in cases.items():
        torch.manual_seed(7)
        with noted(name, found):
            case()
    return found
