"""One builder an entry, across processes and threads.

``flock`` dies with its holder, so ``kill -9`` leaves no lock behind. Where a file system has no
locks the build goes on without: publication is atomic anyway, only work may be done twice.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ascendkit.jit.errors import CacheError

T = TypeVar("T")

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EINTR}
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_LONGEST_WAIT_S = 0.025
_held: set[int] = set()


def once(
    path: Path,
    claimed: Callable[[], bool],
    ready: Callable[[bool], T | None],
    build: Callable[[], T],
    *,
    timeout_s: float,
) -> T:
    """The result of ``build``, run by one process at a time for ``path``.

    Args:
        path: lock file, made and removed here.
        claimed: a cheap test that a result may be there; it ends the wait early.
        ready: the result if there is one; its argument tells that another builder was seen, so
            that its result, if late, is worth waiting for.
        build: makes the result.
        timeout_s: wait this long for another builder, then build without the lock.

    Raises:
        CacheError: the lock file cannot be made.
    """
    deadline = time.monotonic() + timeout_s
    waited = False
    pause = 0.001
    while (fd := _try(path)) is None:
        waited = True
        if claimed() and (found := ready(False)) is not None:
            return found
        if time.monotonic() > deadline:
            return build()
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_WAIT_S)
    try:
        found = ready(waited)
        return build() if found is None else found
    finally:
        _release(fd, path)


def _try(path: Path) -> int | None:
    """A descriptor that holds the lock, -1 where locks do not exist, None if another has it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CacheError(
            f"cannot write to the kernel cache: {path}: {error.strerror};"
            " point JIT_CACHE_DIR, with your library's prefix, at a writable folder"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file is removed by its last holder: what we locked may no longer be what is there.
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            _held.add(fd)
            return fd
    except OSError as error:
        if error.errno in _NO_LOCKS:
            os.close(fd)
            return -1
        if error.errno not in _BUSY and not isinstance(error, FileNotFoundError):
            os.close(fd)
            raise
    os.close(fd)
    return None


def _release(fd: int, path: Path) -> None:
    if fd < 0:
        return
    with suppress(OSError):
        os.unlink(path)
    _held.discard(fd)
    os.close(fd)


def _drop_inherited() -> None:
    # A forked child shares its parent's locks and would keep them beyond the parent's death.
    for fd in _held:
        with suppress(OSError):
            os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_drop_inherited)
