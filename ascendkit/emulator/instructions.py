"""The instruction table: every name the emulator knows, what it means, and how we know.

One YAML file a group under ``table/``. The documentation page, the provenance file, the coverage
report and the check for unknown names are all made from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

GROUPS = ("predicate", "memory", "vector", "sync", "copy", "cube", "simt", "helper")
CONFIDENCE = ("documented", "inferred", "guessed")
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
_FOLDER = Path(__file__).resolve().parent / "table"


@dataclass(frozen=True)
class Instruction:
    """One name or form.

    Attributes:
        name: as printed by TileLang; ``.form`` distinguishes operand kinds of one name.
        group: file of the table.
        pipe: which pipe executes it.
        form: signature in words.
        operands: operand -> where it lives.
        align: operand -> bytes, or a word for a multiple of the element.
        semantics: what it does.
        cost: slot of the time model.
        sources: keys of ``sources()``.
        confidence: documented (a source says so), inferred (from use), guessed.
    """

    name: str
    group: str
    pipe: str
    form: str
    operands: Mapping[str, str]
    align: Mapping[str, int | str]
    semantics: str
    cost: str
    sources: tuple[str, ...]
    confidence: str

    @property
    def symbol(self) -> str:
        """The C++ identifier, without form and scope."""
        return self.name.removeprefix("::").partition(".")[0]


def _read(name: str) -> Any:
    with open(_FOLDER / f"{name}.yaml", encoding="utf-8") as file:
        return yaml.safe_load(file)


@cache
def sources() -> dict[str, str]:
    """Source key -> what it is."""
    found: dict[str, str] = _read("sources")
    return found


@cache
def table() -> dict[str, Instruction]:
    """All instructions by name, in table order. Raises ValueError for an inconsistent table."""
    found: dict[str, Instruction] = {}
    for one in _instructions():
        if one.name in found:
            raise ValueError(f"instruction table: {one.name} appears twice")
        found[one.name] = one
    return found


def _instructions() -> Iterator[Instruction]:
    for group in GROUPS:
        data = _read(group)
        for family in data["families"]:
            row = {k: family.get(k, data.get(k)) for k in ("pipe", "cost", "operands", "align")}
            where = f"instruction table, {group}: {family['names'][0]}"
            unknown = [s for s in family["source"] if s not in sources()]
            if unknown or row["pipe"] not in PIPES or family["confidence"] not in CONFIDENCE:
                raise ValueError(f"{where}: bad source {unknown}, pipe or confidence")
            for name in family["names"]:
                yield Instruction(
                    name=name,
                    group=group,
                    pipe=row["pipe"],
                    form=family["form"],
                    operands=row["operands"] or {},
                    align=row["align"] or {},
                    semantics=family["semantics"],
                    cost=row["cost"],
                    sources=tuple(family["source"]),
                    confidence=family["confidence"],
                )


def symbols() -> set[str]:
    """Every identifier the table covers."""
    return {one.symbol for one in table().values()}


def confidence_counts() -> Counter[str]:
    """How many instructions have each confidence."""
    return Counter(one.confidence for one in table().values())
