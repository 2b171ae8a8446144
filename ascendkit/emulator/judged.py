"""``judged()``: kernels that run inside the block are judged, and their findings are kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascendkit.emulator.findings.finding import Finding
    from ascendkit.emulator.kernel import EmulatedKernel


@dataclass
class Kept:
    """What a block saw.

    Attributes:
        findings: of all its launches, in their order.
        launches: of kernels, judged ones.
        suspects: reads of bytes that nobody wrote, for which launches were repeated.
    """

    findings: list[Finding] = field(default_factory=list)
    launches: int = 0
    suspects: int = 0

    @property
    def errors(self) -> list[str]:
        """One line for each place with a finding of severity error."""
        lines = [
            f"{f.code} {f.title}: {f.kernel} line {f.here.line}, {f.space} {f.buffer} "
            f"bytes {f.begin}..{f.end}: {f.detail}"
            for f in self.findings
            if f.severity == "error"
        ]
        return list(dict.fromkeys(lines))


class FindingsWarning(UserWarning):
    """A judged launch has findings, and nobody was there to take them."""


_kept: ContextVar[Kept | None] = ContextVar("ascendkit_emulator_judged", default=None)


@contextmanager
def judged() -> Iterator[Kept]:
    """Judge every launch of a lowered kernel inside the block, and keep what is seen.

    ``ASCENDKIT_EMULATOR_CHECK=0`` turns the judges off here too. What an inner block keeps, the
    outer one keeps as well.
    """
    kept = Kept()
    outer = _kept.get()
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)
        if outer is not None:
            outer.findings += kept.findings
            outer.launches += kept.launches
            outer.suspects += kept.suspects


def inside() -> bool:
    """Whether a block is open."""
    return _kept.get() is not None


def keep(kernel: EmulatedKernel, origins: Any, *, read: bool) -> None:
    """Keep what the judges saw in the last launch of ``kernel``, if a block is open.

    Without a block it is a ``FindingsWarning``, unless the caller asked for this check
    (``read``) and so reads the findings of the launch.
    """
    from ascendkit.emulator.findings.finding import Reader
    from ascendkit.emulator.findings.merge import merged

    reader = Reader(kernel.text, origins)
    found = merged(reader.of_raw(f, kernel.regions) for f in kernel.findings)
    kept = _kept.get()
    if kept is not None:
        kept.launches += 1
        kept.suspects += kernel.suspects
        kept.findings += found
    elif not read and any(f.severity in ("error", "warning") for f in found):
        from ascendkit.emulator.findings import render

        text = f"{kernel.kernel.name}: {render.summary(found)}\n{render.plain(found)}"
        warnings.warn(text, FindingsWarning, stacklevel=2)
