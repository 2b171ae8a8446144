"""The commit marker: what an entry is called and what exactly its files contain."""

from __future__ import annotations

import json
import os
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
        return cls(name, {file: _describe(directory / file) for file in listing(directory)})

    @classmethod
    def parse(cls, data: bytes) -> Manifest:
        """Read a marker.

        Raises:
            Damage: truncated, changed, or written by something else.
        """
        body, _, seal = data.rstrip(b"\n").rpartition(b"\n")
        if seal != content_digest(body).encode():
            raise Damage(f"marker of {len(data)} bytes: unsealed or changed")
        try:
            record = json.loads(body)
            files = {name: (size, sum_) for name, (size, sum_) in record["files"].items()}
            manifest = cls(record["name"], files)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise Damage("marker of an unknown kind") from error
        if record.get("format") != FORMAT or not files:
            raise Damage(f"marker of format {record.get('format')!r}, wanted {FORMAT!r} with files")
        return manifest

    def dump(self) -> bytes:
        """The marker's bytes: one JSON object, and on the last line the digest of what precedes."""
        record = {"format": FORMAT, "name": self.name, "files": self.files}
        body = json.dumps(record, indent=1).encode()
        return body + b"\n" + content_digest(body).encode() + b"\n"

    def verify(self, directory: Path) -> None:
        """Compare every listed file with its size and digest.

        Raises:
            Damage: a file is missing, truncated or changed.
        """
        for name in self.files:
            self.read(directory, name)

    def read(self, directory: Path, name: str) -> bytes:
        """The contents of one listed file.

        Raises:
            Damage: not listed, missing, truncated or changed.
        """
        if name not in self.files or os.path.isabs(name) or ".." in name.split("/"):
            raise Damage(f"{name!r}: not a listed file below the entry")
        try:
            data = read_file(directory / name)
        except OSError as error:
            raise Damage(f"{name}: {error.strerror}") from error
        size, digest = self.files[name]
        if len(data) != size:
            raise Damage(f"{name}: {len(data)} bytes, wanted {size}")
        if content_digest(data) != digest:
            raise Damage(f"{name}: contents changed")
        return data


def listing(directory: Path) -> list[str]:
    """Names of all files below ``directory``, relative to it."""
    found = []
    for folder, _, names in os.walk(directory):
        found += [os.path.relpath(os.path.join(folder, name), directory) for name in names]
    return sorted(found)


def _describe(path: Path) -> tuple[int, str]:
    data = read_file(path)
    return len(data), content_digest(data)
