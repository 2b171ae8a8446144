"""Files of records: a line is written whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from ascendkit.bench.record import Record, from_json


def append(path: Path, record: Record) -> None:
    """Add a record. Several processes may append to one file; a full disk leaves it as it was."""
    append_line(path, record.to_json())


def append_line(path: Path, text: str) -> None:
    """Add one line of JSON, whole or not at all."""
    line = (text + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        before = os.fstat(handle).st_size
        if os.write(handle, line) != len(line):
            os.ftruncate(handle, before)
            raise OSError(f"{path}: could not write a whole record")
    finally:
        os.close(handle)


def load(path: Path) -> list[Record]:
    """The timed records of a file, without lines that say they are of another kind.

    Raises:
        ValueError: with file and line, for the first that is not legal.
    """
    found = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                if not _of_another_kind(line):
                    found.append(from_json(line))
            except ValueError as e:
                raise ValueError(f"{path}:{number}: {e}") from None
    return found


def _of_another_kind(line: str) -> bool:
    """Timed records carry no key ``record``; every other kind of line names itself by it."""
    try:
        raw = json.loads(line)
    except json.JSONDecodeError:
        return False
    return isinstance(raw, dict) and isinstance(raw.get("record"), str)
