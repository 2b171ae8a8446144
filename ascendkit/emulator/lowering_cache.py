"""Lowered kernels on disk: lowering costs seconds, and depends on nothing but its inputs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

FORMAT = 6


def key(prim_func: Any, pass_configs: Mapping[str, Any]) -> str:
    """Digest of everything the lowered text depends on."""
    options = sorted((str(k), str(v)) for k, v in pass_configs.items())
    parts = [str(FORMAT), version("tilelang"), repr(options), prim_func.script(show_meta=True)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def remember(folder: Path, name: str, make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The entry ``name``: read, or made and written. An unwritable folder is no error."""
    path = folder / f"{name}.json"
    try:
        found: dict[str, str] = json.loads(path.read_text())
        return found
    except (OSError, ValueError):
        pass
    made = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            json.dump(made, file)
        os.replace(file.name, path)
    except OSError:
        pass
    return made
