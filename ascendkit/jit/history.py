"""What a root has compiled, so that a new compiler or an emptied cache can be warmed up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ascendkit.jit import files, staging
from ascendkit.jit.digest import content_digest
from ascendkit.jit.request import Request

FOLDER = "history"


def record(root: Path, request: Request[Any]) -> None:
    """Remember ``request`` below ``root``; a full disk or an unnameable backend only loses it."""
    with suppress(OSError, ValueError):
        data = request.dump().encode()
        folder = root / FOLDER
        path = folder / f"{request.tag}.{content_digest(data)}.json"
        folder.mkdir(parents=True, exist_ok=True)
        scratch = root / "tmp" / staging.unique_name()
        scratch.write_bytes(data)
        os.replace(scratch, path)


def requests(root: Path) -> Iterator[tuple[Path, Request[Any] | ValueError]]:
    """Every remembered request with its file, or why it cannot be read; the latest first."""
    for path in sorted((root / FOLDER).glob("*.json"), key=_age):
        try:
            yield path, Request.parse(files.read_file(path).decode())
        except (OSError, ValueError) as error:
            yield path, ValueError(str(error))


def _age(path: Path) -> tuple[float, str]:
    try:
        return -path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name
