"""Schedules: a legal order of the pipes under which a kernel goes wrong, kept in a file.

A race is a statement about orders that did not happen. ``search`` makes one happen: it launches
with random legal orders until the outputs differ from those of program order, and returns the
schedule. Saved, it is replayed by ``launch(schedule=path)``, on the same kernel and arguments only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascendkit.emulator.mutants import Mutant
    from ascendkit.emulator.repeat import Repeated

FORMAT = 1


@dataclass(frozen=True)
class Schedule:
    """A random legal order.

    Attributes:
        seed: what ``replay`` takes; the order is a function of it, with one host thread.
        kernel: digest of the source text.
        arguments: digest of all arguments before the launch.
        effect: what differs from program order, or what the launch ends with.
    """

    seed: int
    kernel: str
    arguments: str
    effect: str

    def save(self, path: str | Path) -> None:
        """Write a file for ``launch(schedule=path)``."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1)
        Path(path).write_text(text + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Schedule:
        """Read a file.

        Raises:
            ValueError: not a schedule of this format.
        """
        try:
            found = json.loads(Path(path).read_text())
            if found.pop("format") != FORMAT:
                raise ValueError("another format")
            return cls(**found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: no schedule of format {FORMAT}: {error}") from None

    def options(self, text: str, args: Sequence[Any]) -> dict[str, int]:
        """What to launch with.

        Raises:
            ValueError: the schedule is of another kernel or of other arguments.
        """
        for name, want, got in (
            ("kernel", self.kernel, kernel_key(text)),
            ("arguments", self.arguments, arguments_key(args)),
        ):
            if got != want:
                raise ValueError(
                    f"schedule: got {name} {got}, wanted those it was found with, {want}"
                )
        return {"replay": self.seed, "threads": 1}


def kernel_key(text: str) -> str:
    """Digest of a source text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def arguments_key(args: Sequence[Any]) -> str:
    """Digest of arguments: values and layouts of tensors, numbers."""
    import torch

    digest = hashlib.sha256()
    for arg in args:
        if isinstance(arg, torch.Tensor):
            digest.update(f"{arg.dtype} {tuple(arg.shape)} {arg.stride()} ".encode())
            flat = arg.contiguous().flatten().view(torch.uint8)
            digest.update(flat.numpy().tobytes())
        else:
            digest.update(f"{arg!r} ".encode())
    return digest.hexdigest()[:32]


def search(launch: Repeated, *, seeds: int = 100, mutate: Sequence[Mutant] = ()) -> Schedule | None:
    """The first of ``seeds`` orders whose outputs are not those of program order, or that fails.

    None says that these orders agree, no more: a race may need another one.

    Raises:
        EmulatorError: the launch fails in program order.
    """
    wanted = launch.launch(mutate=mutate)
    launch.restore()
    key, arguments = kernel_key(launch.text), arguments_key(launch.args)
    found = None
    for seed in range(1, seeds + 1):
        what = effect(wanted, partial(launch.launch, replay=seed, mutate=mutate))
        if what:
            found = Schedule(seed, key, arguments, what)
            break
    launch.restore()
    return found


def effect(wanted: Sequence[bytes], launch: Callable[[], Sequence[bytes]]) -> str:
    """How a launch differs from one that left ``wanted``; empty: it does not."""
    from ascendkit.emulator.errors import EmulatorError

    try:
        got = launch()
    except EmulatorError as error:
        return f"ends with {error.code}"
    return "" if got == wanted else _difference(wanted, got)


def _difference(wanted: Sequence[bytes], got: Sequence[bytes]) -> str:
    for number, (a, b) in enumerate(zip(wanted, got)):
        places = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
        if places:
            return f"argument {number}: {len(places)} bytes differ, the first at byte {places[0]}"
    return "outputs differ"
