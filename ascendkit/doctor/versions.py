"""Which packages the suite asks for, which are pinned, and which are here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from ascendkit.data import configs

if TYPE_CHECKING:
    from packaging.requirements import Requirement

BASE = "base"
"""Group of the requirements that every installation needs; the others are named by their extra."""


@dataclass(frozen=True)
class Need:
    """One required package.

    Args:
        name: as the metadata spells it.
        group: ``base`` or the extra that asks for it.
        wanted: version range of the metadata.
        pin: version of ``constraints.txt``, or "".
        found: installed version, or "".
        fits: whether ``found`` lies in ``wanted``.
    """

    name: str
    group: str
    wanted: str
    pin: str
    found: str
    fits: bool

    @property
    def state(self) -> str:
        """``missing``, ``wrong``, ``as pinned`` or ``in range``."""
        if not self.found:
            return "missing"
        if not self.fits:
            return "wrong"
        # A local build (2.13.0+cpu) is the pinned release.
        return "as pinned" if self.found.partition("+")[0] == self.pin else "in range"


def needs() -> list[Need]:
    """All requirements that apply to this Python, base first."""
    pinned = pins()
    out = []
    for group, requirement in declared():
        found = _installed(requirement.name)
        fits = bool(found) and requirement.specifier.contains(found, prereleases=True)
        pin = pinned.get(_folded(requirement.name), "")
        wanted = str(requirement.specifier) or "any"
        out.append(Need(requirement.name, group, wanted, pin, found, fits))
    return out


def declared() -> Iterator[tuple[str, Requirement]]:
    """(group, requirement) of this project, from the checkout or else from its own metadata."""
    from packaging.requirements import Requirement

    project = configs().parent / "pyproject.toml"
    if project.is_file():
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        texts = {BASE: table["dependencies"], **table["optional-dependencies"]}
        for group, requirements in texts.items():
            for text in requirements:
                requirement = Requirement(text)
                if requirement.marker is None or requirement.marker.evaluate():
                    yield group, requirement
        return
    about = metadata.metadata("ascendkit")
    for text in metadata.requires("ascendkit") or ():
        requirement = Requirement(text)
        for group in (BASE, *(about.get_all("Provides-Extra") or ())):
            marker = requirement.marker
            extra = "" if group == BASE else group
            if marker is None or marker.evaluate({"extra": extra}):
                yield group, requirement
                break


def pins() -> dict[str, str]:
    """Exact versions of ``constraints.txt`` that apply to this Python, by folded name."""
    from packaging.requirements import Requirement

    out = {}
    for line in constraints().read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate():
                out[_folded(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return out


def constraints() -> Path:
    """``constraints.txt``: beside ``configs``, in a checkout and in a wheel alike."""
    return configs().parent / "constraints.txt"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _folded(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
