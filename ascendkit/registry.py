"""The registry of ops: a scan of folder names, nothing to edit when an op is added.

A component is a top-level package that carries ``component.yaml``; an op is a folder below it that
holds ``cost.py`` or ``reference.py``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ascendkit.data import load_yaml
from ascendkit.errors import unknown
from ascendkit.op import Op

MARKER = "component.yaml"


@dataclass(frozen=True)
class Component:
    """One of the suite's packages and what ``component.yaml`` says of it."""

    name: str
    folder: Path

    @property
    def facts(self) -> dict[str, Any]:
        """Title, NVIDIA and Ascend twins, upstream features."""
        return load_yaml(self.folder / MARKER)

    @property
    def ops(self) -> tuple[Op, ...]:
        """Ops of this component, by name."""
        return tuple(o for o in ops().values() if o.component == self.name)


@lru_cache(maxsize=1)
def components() -> dict[str, Component]:
    """Components beside this package, by name."""
    root = Path(__file__).resolve().parent.parent
    with os.scandir(root) as entries:
        found = [Path(e.path) for e in entries if e.is_dir() and not e.name.startswith(".")]
    return {p.name: Component(p.name, p) for p in sorted(found) if (p / MARKER).is_file()}


@lru_cache(maxsize=1)
def ops() -> dict[str, Op]:
    """All ops, by dotted name such as ``tilekernels.topk_gate``."""
    found: dict[str, Op] = {}
    for component in components().values():
        for here, folders, names in os.walk(component.folder):
            folders[:] = sorted(f for f in folders if f.isidentifier() and f != "__pycache__")
            stems = frozenset(n[:-3] for n in names if n.endswith(".py"))
            if stems & {"cost", "reference"} and Path(here) != component.folder:
                parts = (component.name, *Path(here).relative_to(component.folder).parts)
                name = ".".join(parts)
                found[name] = Op(name, component.name, Path(here), stems)
    return found


def op(name: str) -> Op:
    """The op of that dotted name; the component may be left out where the rest is unique."""
    table = ops()
    if name in table:
        return table[name]
    short = [n for n in table if n.partition(".")[2] == name or n.rpartition(".")[2] == name]
    if len(short) == 1:
        return table[short[0]]
    raise unknown("op", name, short or table)
