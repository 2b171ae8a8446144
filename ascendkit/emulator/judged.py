"""``judged()``: kernels that run inside the block are judged, and their findings are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascendkit.emulator.findings.finding import Finding

_kept: ContextVar[list[Finding] | None] = ContextVar("ascendkit_emulator_judged", default=None)


@contextmanager
def judged() -> Iterator[list[Finding]]:
    """Judge every launch of a lowered kernel inside the block; the list that it yields fills up.

    ``ASCENDKIT_EMULATOR_CHECK=0`` turns the judges off here too; the list stays empty then.
    """
    found: list[Finding] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def inside() -> bool:
    """Whether a block is open."""
    return _kept.get() is not None


def keep(lowered: Any) -> None:
    """Keep the findings of the last call of a LoweredKernel, if a block is open."""
    found = _kept.get()
    if found is None or not lowered.findings:
        return
    from ascendkit.emulator.findings.finding import Reader

    reader = Reader(lowered.kernel_source, lowered.origins)
    found += [reader.of_raw(r, lowered.kernel(r.kernel).regions) for r in lowered.findings]
