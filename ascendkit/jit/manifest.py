"""The commit marker: what an entry is called and what exactly its files contain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ascendkit.jit.digest import content_digest
from ascendkit.jit.files import read_file

MARKER = ".committed"
FORMAT = "ascendkit.jit 1"


class Damage(ValueError):
    """An entry is not what its marker says, or has no marker of ours."""


@dataclass(frozen=True)
class Manifest:
    """Name of an entry, and size and digest of each of its files."""

    name: str
    files: Mapping[str, tuple[int, str]]

    @classmethod
    def of(cls, name: str, directory: Path) -> Manifest:
        """Describe the files of ``directory`` as they are now."""
        return cls(name, {path.name: _describe(path) for path in sorted(directory.iterdir())})

    @classmethod
    def parse(cls, data: bytes) -> Manifest:
        """Read a marker.

        Raises:
            Damage: truncated, or written by something else.
        """
        try:
            record = json.loads(data)
            if record["format"] != FORMAT:
                raise Damage(f"marker format {record['format']!r}, wanted {FORMAT!r}")
            files = {
                str(name): (int(size), str(sum_)) for name, (size, sum_) in record["files"].items()
            }
            return cls(str(record["name"]), files)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if isinstance(error, Damage):
                raise
            raise Damage(f"unreadable marker ({len(data)} bytes)") from error

    def dump(self) -> bytes:
        """The marker's bytes."""
        record = {"format": FORMAT, "name": self.name, "files": self.files}
        return json.dumps(record, indent=1).encode() + b"\n"

    def verify(self, directory: Path) -> None:
        """Compare every listed file with its size and digest.

        Raises:
            Damage: a file is missing, truncated or changed.
        """
        for name, expected in self.files.items():
            if "/" in name or name in ("", ".", ".."):
                raise Damage(f"marker lists {name!r}, which is not a file name")
            try:
                found = _describe(directory / name)
            except OSError as error:
                raise Damage(f"{name}: {error.strerror}") from error
            if found[0] != expected[0]:
                raise Damage(f"{name}: {found[0]} bytes, wanted {expected[0]}")
            if found[1] != expected[1]:
                raise Damage(f"{name}: contents changed")


def _describe(path: Path) -> tuple[int, str]:
    data = read_file(path)
    return len(data), content_digest(data)
