"""Names of temporary folders: unique, and telling whether their maker still lives."""

from __future__ import annotations

import os
import re
import secrets
import time
from functools import cache
from pathlib import Path

from ascendkit.jit.digest import digest

FOREIGN_AGE_S = 24 * 3600
"""Age after which a temporary folder of another machine counts as abandoned."""

_NAME = re.compile(r"(\d+)-([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{8}(-.*)?")


def unique_name() -> str:
    """``<pid>-<machine>-<start>-<random>``, the last three of 8 hexadecimal digits."""
    pid = os.getpid()
    return f"{pid}-{_machine()}-{_started(pid)}-{secrets.token_hex(4)}"


def is_abandoned(path: Path) -> bool:
    """Whether the maker of ``path`` is dead, or unknowable and ``path`` older than a day.

    A process is known by its id, start time, boot and pid namespace, so a reused id or a container
    with its own numbering does not pass for the maker.
    """
    match = _NAME.fullmatch(path.name)
    if match and match.group(2) == _machine():
        return _started(int(match.group(1))) != match.group(3)
    try:
        return time.time() - path.stat().st_mtime > FOREIGN_AGE_S
    except OSError:
        return False


@cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot, namespace = os.uname().nodename, ""
    return digest(boot, namespace)[:8]


def _started(pid: int) -> str:
    """Start time of ``pid`` as 8 digits; "gone" when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "gone"
    # The name in parentheses may hold blanks; field 3 (state) follows the last parenthesis.
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return "gone"
    return digest(fields[19])[:8]
