"""The digest of a source and of every tracked header it reaches.

A line scanner, not a preprocessor: an include under ``#if 0`` counts, an include made by a macro
does not. That errs towards rebuilding and needs no compiler.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

from ascendkit.jit.config import Config
from ascendkit.jit.digest import content_digest
from ascendkit.jit.errors import IncludeError
from ascendkit.jit.files import read_file

MAX_DEPTH = 200
"""Nesting at which compilers give up too (GCC's -fmax-include-depth)."""

# EINVAL is what read_file says of folders and pipes.
_NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG}
_SPACE = b" \t\v\f"
# Searching for the literal word keeps the scan at memchr speed; the line's head is checked after.
_DIRECTIVE = re.compile(rb'include[ \t\v\f]*([<"])')


class IncludeTracker:
    """Digests sources for one configuration; headers are read once and remembered.

    A header that failed is not remembered, so it may appear later. ``forget`` drops everything.
    """

    def __init__(self, config: Config) -> None:
        self._dirs = tuple(map(str, config.include_dirs))
        self._prefixes = config.include_prefixes
        self._quoted = config.quoted_includes == "track"
        self._known: dict[str, str] = {}

    def digest(self, source: bytes) -> str:
        """The digest of ``source``: its bytes, then its tracked includes in textual order.

        Raises:
            IncludeError: a tracked header is missing or circular, or an include is not ``<name>``.
        """
        return self._digest(source, ())

    def forget(self) -> None:
        """Drop remembered headers, so that edited ones are read again."""
        self._known.clear()

    def _digest(self, code: bytes, visiting: tuple[str, ...]) -> str:
        """The digest of ``code``, the last file of ``visiting`` or the source itself."""
        origin = visiting[-1] if visiting else "the source"
        if len(visiting) > MAX_DEPTH:
            raise IncludeError(f"includes nest deeper than {MAX_DEPTH}: {origin}")
        parts = [code]
        for opener, name in scan(code, origin):
            found = self._include(opener, os.fsdecode(name), origin, visiting)
            if found is not None:
                parts.append(found.encode())
        return content_digest(*parts)

    def _include(
        self, opener: bytes, name: str, origin: str, visiting: tuple[str, ...]
    ) -> str | None:
        """The digest of one included file, None if it is not tracked."""
        tracked = name.startswith(self._prefixes)
        folders = self._dirs if tracked else ()
        if opener == b'"':
            if not self._quoted:
                raise IncludeError(f'non-standard include in {origin}: "{name}", wanted <{name}>')
            if visiting:
                folders = (os.path.dirname(origin), *folders)
        for folder in folders:
            path = os.path.normpath(os.path.join(folder, name))
            known = self._known.get(path)
            if known is not None:
                return known
            if path in visiting:
                raise IncludeError("circular include: " + " -> ".join([*visiting, path]))
            code = _read(path)
            if code is not None:
                self._known[path] = known = self._digest(code, (*visiting, path))
                return known
        if tracked:
            searched = ", ".join(self._dirs) or "no include directory"
            raise IncludeError(f"failed to open <{name}>, included by {origin}: not in {searched}")
        return None


def _read(path: str) -> bytes | None:
    """The contents of a header, None if there is no such file."""
    try:
        return read_file(path)
    except ValueError:
        # A NUL byte in the name.
        return None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise IncludeError(f"failed to open {path} for reading: {error.strerror}") from error


def scan(code: bytes, origin: str) -> Iterator[tuple[bytes, bytes]]:
    """The include directives of ``code`` as (``<`` or ``"``, name), in textual order."""
    for match in _DIRECTIVE.finditer(code):
        head = code[code.rfind(b"\n", 0, match.start()) + 1 : match.start()].strip(_SPACE)
        if head != b"#":
            continue
        opener = match.group(1)
        end = code.find(b"\n", match.end())
        rest = code[match.end() : end if end >= 0 else len(code)]
        name, closed, _ = rest.partition(b">" if opener == b"<" else b'"')
        if not closed or not name or name != name.strip(_SPACE):
            line = os.fsdecode(opener + rest).strip()
            raise IncludeError(f"non-standard include in {origin}: #include {line}")
        yield opener, name
