"""Shared objects in this process, out of reach of whatever happens to their files."""

from __future__ import annotations

import _ctypes
import ctypes
import itertools
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ascendkit.jit import forks
from ascendkit.jit.arguments import Value, as_ctypes, check_by_value
from ascendkit.jit.digest import content_digest
from ascendkit.jit.elf import SHARED, Elf
from ascendkit.jit.errors import LaunchError, LoadError
from ascendkit.jit.files import read_file
from ascendkit.jit.manifest import MARKER


class HostModule:
    """A shared object. It is closed when nothing refers to its functions.

    Args:
        path: the file, for messages.
        library: the loaded file.
        needed: libraries it is linked against.
    """

    def __init__(self, path: Path, library: ctypes.CDLL, needed: Sequence[ctypes.CDLL]) -> None:
        self._path = path
        self._library: ctypes.CDLL | None = library
        self._needed = tuple(needed)

    def symbol(self, name: str) -> Any:
        """The exported function ``name``."""
        if self._library is None:
            raise LaunchError(f"{self._path} must be loaded before launch")
        try:
            return self._library[name]
        except AttributeError as error:
            raise LoadError(f"{self._path} exports no {name!r}") from error

    def call(self, name: str, args: Sequence[object]) -> Any:
        """Call ``name`` with converted arguments; returns its C int."""
        return self.symbol(name)(*convert(args))

    def close(self) -> None:
        """Drop the library; functions handed out keep it alive."""
        self._library = None
        self._needed = ()


def convert(args: Sequence[object]) -> list[Value]:
    """Arguments of a call as C values."""
    return [check_by_value(as_ctypes(arg)) for arg in args]


class _Loader:
    """The libraries of this process, one for each image."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: weakref.WeakValueDictionary[str, ctypes.CDLL] = weakref.WeakValueDictionary()
        self._copies = itertools.count(1)
        forks.register(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def open(self, path: Path, image: bytes) -> ctypes.CDLL:
        key = content_digest(image)
        with self._lock:
            library = self._loaded.get(key)
            if library is None:
                library = self._loaded[key] = self._open_copy(path, image)
            return library

    def _open_copy(self, path: Path, image: bytes) -> ctypes.CDLL:
        try:
            with os.fdopen(os.memfd_create(path.name), "wb") as file:
                file.write(image)
                file.flush()
                # The linker takes a name it has seen for the library it saw, and descriptors are
                # reused: spell each path anew, with a counter written in "./" and ".//".
                bits = f"{next(self._copies):b}"
                spelling = "".join("./" if bit == "1" else ".//" for bit in bits)
                return _dlopen(f"/proc/self/fd/{spelling}{file.fileno()}", path)
        except (OSError, LoadError):
            # No /proc, or a policy against code in anonymous files.
            return _dlopen(str(path), path)


_loader = _Loader()


def load(path: Path, image: bytes, needed: Sequence[Path], *, by_path: bool = False) -> HostModule:
    """Load the shared object ``image`` that lies at ``path``.

    The bytes, proved by the caller, go into memory of this process: a file truncated or removed
    later, perhaps by another machine, would otherwise kill the process at its next page fault.
    With ``by_path`` the file itself is mapped, so that debuggers find its symbols. One image is
    loaded once, however often it is asked for.

    Args:
        needed: objects it was linked against; shared ones are loaded first. It names ours by
            soname, so a cache folder may move.

    Raises:
        LoadError: the dynamic linker refuses.
    """
    libraries = [library for file in needed if (library := _dependency(file)) is not None]
    library = _dlopen(str(path), path) if by_path else _loader.open(path, image)
    return HostModule(path, library, libraries)


def _dependency(path: Path) -> ctypes.CDLL | None:
    try:
        image = read_file(path)
        if Elf(image).type != SHARED:
            return None
    except (OSError, ValueError):
        return None
    # Other people's libraries may look for files beside them, and may be loaded already.
    ours = path.with_name(MARKER).exists()
    return _loader.open(path, image) if ours else _dlopen(str(path), path)


def _dlopen(name: str, path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise LoadError(f"cannot load {path}: {error}") from error
    # Code may run in other threads when the interpreter ends, so it is not unmapped then.
    weakref.finalize(library, _ctypes.dlclose, library._handle).atexit = False
    return library
