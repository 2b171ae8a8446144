"""The disk cache: several roots, atomic publication, and proof before use.

Layout of a root: ``cache/<tag>.<digest>/`` holds entries, ``tmp/`` entries in the making, ``lock/``
the locks of builds under way. Only the first root is written to. An entry counts only when its
marker is there and every file is as the marker says, so a crash, a full disk or a stray hand can
cost a rebuild but never a wrong kernel.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ascendkit.jit import files, staging
from ascendkit.jit.errors import CacheError
from ascendkit.jit.manifest import MARKER, Damage, Manifest

RETRY_DELAYS_S = (0.001, 0.004, 0.02, 0.075, 0.15)
"""Waits before an entry that another process is known to have published counts as damaged."""

_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}
_MOVES = 16


@dataclass(frozen=True)
class Entry:
    """A verified entry."""

    name: str
    directory: Path
    manifest: Manifest

    def read(self, name: str) -> bytes:
        """The file ``name``, exactly as it was committed.

        Raises:
            Damage: it is gone or has changed.
        """
        return self.manifest.read(self.directory, name)

    def is_sound(self) -> bool:
        """Whether it still is what it was when verified."""
        try:
            inspect(self.directory, self.name)
        except (Damage, FileNotFoundError):
            return False
        return True


class DiskCache:
    """Entries below ``roots``, looked up in order."""

    def __init__(self, roots: Sequence[Path]) -> None:
        if not roots:
            raise ValueError("a disk cache needs at least one root")
        self.roots = tuple(roots)
        self._swept = False

    def lookup(self, name: str, *, patient: bool = False) -> Entry | None:
        """The first sound entry called ``name``.

        A marker whose files do not match it is looked at again for a quarter of a second: on a
        network file system the work of another machine shows up late. With ``patient``, so is the
        first root when it has no marker.
        """
        for directory in self._places(name):
            delays = iter(RETRY_DELAYS_S)
            while True:
                try:
                    entry = Entry(name, directory, inspect(directory, name))
                except FileNotFoundError:
                    may_come = patient and directory.parent.parent == self.roots[0]
                except Damage:
                    may_come = True
                else:
                    files.touch(directory / MARKER)
                    return entry
                delay = next(delays, None)
                if not may_come or delay is None:
                    break
                _refresh(directory)
                time.sleep(delay)
        return None

    def has_marker(self, name: str) -> bool:
        """Whether some root claims the entry; cheap, proves nothing."""
        return any((place / MARKER).exists() for place in self._places(name))

    def lock_path(self, name: str) -> Path:
        """The file to lock while building ``name``; its folder exists on return."""
        with self.writing():
            folder = self.roots[0] / "lock"
            folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}.lock"

    @contextmanager
    def stage(self) -> Iterator[Path]:
        """A new folder to build in, gone on exit unless published.

        Raises:
            CacheError: the first root cannot be written to.
        """
        with self.writing():
            folder = self.roots[0] / "tmp"
            folder.mkdir(parents=True, exist_ok=True)
            if not self._swept:
                self._swept = True
                for remains in self.abandoned():
                    files.remove_tree(remains)
            place = folder / staging.unique_name()
            place.mkdir()
        try:
            yield place
        finally:
            files.remove_tree(place)

    def publish(self, staged: Path, name: str) -> Entry:
        """Seal ``staged`` and move it into place as ``name``.

        If a sound entry is there already, that one is returned and ``staged`` is dropped; an
        unsound one makes way.

        Raises:
            CacheError: the first root cannot be written to.
        """
        final = self.roots[0] / "cache" / name
        with self.writing():
            manifest = Manifest.of(name, staged)
            files.write_file(staged / MARKER, manifest.dump())
            files.sync_tree(staged)
            final.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(_MOVES):
                try:
                    os.rename(staged, final)
                except OSError as error:
                    if error.errno not in _TAKEN:
                        raise
                else:
                    files.sync(final.parent)
                    return Entry(name, final, manifest)
                winner = DiskCache(self.roots[:1]).lookup(name, patient=True)
                if winner is not None:
                    files.remove_tree(staged)
                    return winner
                self.evict(final)
        raise CacheError(f"{final}: another process keeps putting unsound entries there")

    def evict(self, directory: Path) -> None:
        """Take an entry out of the cache; processes that loaded it keep their copy."""
        aside = self.roots[0] / "tmp" / f"{staging.unique_name()}-evicted"
        aside.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(directory, aside)
        except FileNotFoundError:
            return
        files.remove_tree(aside)

    def abandoned(self) -> list[Path]:
        """Temporary folders of the first root whose makers are gone."""
        folder = self.roots[0] / "tmp"
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if staging.is_abandoned(path))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn an OSError of writing below the first root into a CacheError that names it."""
        try:
            yield
        except OSError as error:
            place = error.filename or self.roots[0]
            raise CacheError(
                f"cannot write to the kernel cache root {self.roots[0]}: {error.strerror}"
                f" ({place}); point JIT_CACHE_DIR, with your library's prefix, at a writable"
                " folder with space"
            ) from error

    def _places(self, name: str) -> list[Path]:
        return [root / "cache" / name for root in self.roots]


def inspect(directory: Path, name: str) -> Manifest:
    """Prove that ``directory`` is a committed, undamaged entry called ``name``.

    Raises:
        FileNotFoundError: there is no marker.
        Damage: there is one, but the entry is not what it says.
    """
    try:
        manifest = Manifest.parse(files.read_file(directory / MARKER))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(str(error)) from error
    except OSError as error:
        raise Damage(f"unreadable marker: {error.strerror}") from error
    if manifest.name != name:
        raise Damage(f"marker of {manifest.name!r}")
    manifest.verify(directory)
    return manifest


def _refresh(directory: Path) -> None:
    # Listing a folder makes network file systems drop a remembered "no such file".
    for folder in (directory.parent, directory):
        with suppress(OSError):
            os.listdir(folder)
