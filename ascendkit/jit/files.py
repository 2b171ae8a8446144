"""File operations that survive crashes, hostile cache contents and full disks."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_UNSYNCABLE = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EROFS}


def read_file(path: Path | str) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: missing, unreadable, or not a regular file (a pipe would block for ever).
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        # One byte more than there should be: the right number means the end, without asking again.
        data = os.read(fd, info.st_size + 1)
        while len(data) != info.st_size:
            more = os.read(fd, 1 << 20)
            if not more:
                break
            data += more
        return data
    finally:
        os.close(fd)


def write_file(path: Path, data: bytes) -> None:
    """Create ``path`` with ``data``, on stable storage when this returns; never replaces."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes, scratch: Path) -> None:
    """Atomically put ``data`` at ``path``, by way of a new file ``scratch`` on the same disk."""
    write_file(scratch, data)
    os.replace(scratch, path)


def sync(path: Path) -> None:
    """Flush one file or folder; file systems that cannot flush folders are left alone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
    finally:
        os.close(fd)


def sync_tree(root: Path) -> None:
    """Flush every file and folder below ``root``, the deepest first."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def remove_tree(path: Path) -> None:
    """Remove a file or folder as far as permissions allow; never raises, follows no link."""
    import shutil

    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when the file does: device, inode, size, modification and change time (ns).

    Raises:
        OSError: it is not there.
    """
    info = path.stat()
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def touch(path: Path) -> None:
    """Set the modification time to now, if allowed."""
    with suppress(OSError):
        os.utime(path)


def is_executable(path: Path) -> bool:
    """Whether ``path`` is a regular file this process may execute."""
    return path.is_file() and os.access(path, os.X_OK)
