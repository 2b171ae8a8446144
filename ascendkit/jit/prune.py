"""Take out of a root what nobody needs."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from ascendkit.jit import files, history
from ascendkit.jit.disk import DiskCache
from ascendkit.jit.inventory import Item, items


@dataclass
class Pruned:
    """What was removed, or would be."""

    entries: list[Item] = field(default_factory=list)
    temporaries: list[Path] = field(default_factory=list)
    locks: list[Path] = field(default_factory=list)
    requests: list[Path] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of the entries."""
        return sum(item.size for item in self.entries)


def prune(
    root: Path,
    *,
    older_than_s: float | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> Pruned:
    """Remove unsound entries, abandoned temporaries and locks; then by age, then by size.

    Args:
        older_than_s: also entries and remembered requests not used for so long.
        max_bytes: then the least recently used entries, until the rest fits.
        dry_run: only tell.

    Entries of other programs stay. Processes that loaded an entry keep their copy.
    """
    pruned = Pruned()
    now = time.time()
    kept: list[Item] = []
    for item in sorted(items(root), key=lambda item: item.used):
        if item.state == "foreign":
            continue
        stale = older_than_s is not None and now - item.used > older_than_s
        (pruned.entries if stale or item.state != "sound" else kept).append(item)
    total = sum(item.size for item in kept)
    for item in kept:
        if max_bytes is None or total <= max_bytes:
            break
        pruned.entries.append(item)
        total -= item.size
    pruned.temporaries = DiskCache([root]).abandoned()
    pruned.locks = [path for path in _listing(root / "lock") if _is_free(path, remove=not dry_run)]
    if older_than_s is not None:
        for path in _listing(root / history.FOLDER):
            if now - path.stat().st_mtime > older_than_s:
                pruned.requests.append(path)
    if not dry_run:
        cache = DiskCache([root])
        for item in pruned.entries:
            cache.evict(item.directory)
        for path in (*pruned.temporaries, *pruned.requests):
            files.remove_tree(path)
    return pruned


def _listing(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_free(path: Path, *, remove: bool) -> bool:
    """Whether no builder holds the lock ``path``; removes it while holding it ourselves."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if remove and os.path.samestat(os.fstat(fd), os.stat(path)):
            os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
