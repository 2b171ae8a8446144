"""What lies in a cache root, and in what state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from ascendkit.jit.builder import METADATA
from ascendkit.jit.disk import inspect
from ascendkit.jit.files import read_file
from ascendkit.jit.manifest import MARKER, Damage, listing

State = Literal["sound", "damaged", "uncommitted", "foreign"]
ENTRY_NAME = re.compile(r"[A-Za-z0-9_]+\.[0-9a-f]{32}")


@dataclass(frozen=True)
class Item:
    """One folder of ``<root>/cache``.

    Attributes:
        state: ``sound``; ``damaged`` (not what its marker says, or with files it does not list);
            ``uncommitted`` (no marker); ``foreign`` (another program's, left alone).
        problem: why it is not sound.
        size: bytes of all files.
        used: time of the last disk hit, seconds since 1970.
        compiler: version line of the compiler that made it.
    """

    root: Path
    name: str
    state: State
    problem: str
    size: int
    used: float
    compiler: str

    @property
    def directory(self) -> Path:
        """Where it lies."""
        return self.root / "cache" / self.name

    def record(self) -> dict[str, object]:
        """The item as plain data."""
        return {**asdict(self), "root": str(self.root)}


def items(root: Path) -> Iterator[Item]:
    """Every entry of ``root``, by name."""
    folder = root / "cache"
    if not folder.is_dir():
        return
    for directory in sorted(folder.iterdir()):
        state, problem = _state(directory)
        size = sum(path.lstat().st_size for path in directory.rglob("*"))
        marker = directory / MARKER
        used = (marker if marker.exists() else directory).lstat().st_mtime
        yield Item(root, directory.name, state, problem, size, used, _compiler(directory))


def _state(directory: Path) -> tuple[State, str]:
    if not ENTRY_NAME.fullmatch(directory.name) or not directory.is_dir():
        return "foreign", "not an entry's name"
    try:
        manifest = inspect(directory, directory.name)
    except FileNotFoundError:
        return "uncommitted", "no commit marker"
    except Damage as damage:
        # DeepJIT, which may share the default root, commits with an empty marker.
        if (directory / MARKER).is_file() and (directory / MARKER).stat().st_size == 0:
            return "foreign", "empty marker"
        return "damaged", str(damage)
    strays = set(listing(directory)) - {*manifest.files, MARKER}
    if strays:
        return "damaged", f"files not in the marker: {', '.join(sorted(strays))}"
    return "sound", ""


def _compiler(directory: Path) -> str:
    try:
        record = json.loads(read_file(directory / METADATA))
        return str(record["compiler_info"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
