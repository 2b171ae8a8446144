"""Where the data tables are and how they are read: plain YAML through the C loader.

Every leaf of a table is ``{value, source}`` (plus ``conflict``, ``note``); ``source`` is a key of
the table's ``sources``. A value of null means that we looked and did not find it: it is printed as
"unknown", never guessed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ascendkit.errors import unknown


def configs() -> Path:
    """The ``configs`` folder: inside the package in a wheel, beside it in a checkout."""
    here = Path(__file__).resolve().parent
    inside = here / "configs"
    return inside if inside.is_dir() else here.parent / "configs"


def load_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping. ValueError with file, line and column where it is malformed."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with path.open(encoding="utf-8") as f:
            got = yaml.load(f, loader)
    except yaml.MarkedYAMLError as e:
        at = e.problem_mark
        where = f":{at.line + 1}:{at.column + 1}" if at else ""
        raise ValueError(f"{path}{where}: {e.problem}") from None
    if not isinstance(got, dict):
        raise ValueError(f"{path}: got {type(got).__name__}, wanted a mapping at the top")
    return got


@lru_cache(maxsize=8)
def table(name: str) -> dict[str, Any]:
    """A data table by stem: ``models``, ``hardware``, ``validation_points``, ``kernels_950``."""
    folder = configs() / "data"
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise unknown("data table", name, (p.stem for p in folder.glob("*.yaml")))
    return load_yaml(path)


@lru_cache(maxsize=1)
def aliases() -> dict[str, str]:
    """The one alias table: every accepted spelling of a model or device, to its key."""
    found: dict[str, str] = {}
    for group in load_yaml(configs() / "data" / "aliases.yaml").values():
        for key, names in group.items():
            for name in (key, *names):
                found[_fold(name)] = key
    return found


def resolve(what: str, name: object, legal: tuple[str, ...]) -> str:
    """The key ``name`` stands for, or ValueError naming the nearest."""
    key = aliases().get(_fold(str(name)))
    if key in legal:
        return str(key)
    raise unknown(what, name, legal)


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_").replace(" ", "_")
