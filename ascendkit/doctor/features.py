"""What upstream has, as the components note it: a state a side, and how it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ascendkit.errors import bad_value, unknown
from ascendkit.registry import MARKER, Component

STATES = {
    "released": "in a published package",
    "main": "in the repository's main branch, in no package",
    "unmerged": "in an open change only",
    "dropped": "was on main, is not in the released package",
    "none": "looked for, not there",
    "unknown": "could not be looked at",
}
"""Legal states and what they mean."""

_KEYS = {"name", "nvidia", "ascend", "checked", "note"}


@dataclass(frozen=True)
class Feature:
    """One feature of upstream.

    Args:
        name: upstream's name.
        nvidia: state on the NVIDIA side, one of :data:`STATES`.
        ascend: state on the Ascend side.
        checked: how both states were found out, and when.
        note: restriction or number of the change, or "".
    """

    name: str
    nvidia: str
    ascend: str
    checked: str
    note: str


def features(component: Component) -> list[Feature]:
    """Features of a component; ValueError for an unknown key, state or check."""
    facts = component.facts
    checks = facts.get("checks") or {}
    where = f"{component.name}/{MARKER}"
    return [_feature(where, raw, checks) for raw in facts.get("features") or ()]


def _feature(where: str, raw: Mapping[str, Any], checks: Mapping[str, str]) -> Feature:
    for key in raw:
        if key not in _KEYS:
            raise unknown(f"{where}: feature key", key, _KEYS)
    missing = _KEYS - {"note"} - set(raw)
    if missing:
        raise bad_value(f"{where}: feature", dict(raw), f"also {', '.join(sorted(missing))}")
    for side in ("nvidia", "ascend"):
        if raw[side] not in STATES:
            raise unknown(f"{where}: {raw['name']}.{side}", raw[side], STATES)
    if raw["checked"] not in checks:
        raise unknown(f"{where}: {raw['name']}.checked", raw["checked"], checks)
    return Feature(
        raw["name"], raw["nvidia"], raw["ascend"], checks[raw["checked"]], raw.get("note", "")
    )
