"""The digest of a source and of every tracked header it reaches.

A line scanner, not a preprocessor: an include under ``#if 0`` counts, an include made by a macro
does not. That errs towards rebuilding and needs no compiler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ascendkit.jit.config import Config
from ascendkit.jit.digest import content_digest
from ascendkit.jit.errors import IncludeError
from ascendkit.jit.files import read_file

MAX_DEPTH = 200
"""Nesting at which compilers give up too (GCC's -fmax-include-depth)."""

_SPACE = b" \t\v\f"
# Searching for the literal word keeps the scan at memchr speed; the line's head is checked after.
_DIRECTIVE = re.compile(rb'include[ \t\v\f]*([<"])')


class IncludeTracker:
    """Digests sources for one configuration; headers are read once and remembered.

    A header that failed is not remembered, so it may appear later. ``forget`` drops everything.
    """

    def __init__(self, config: Config) -> None:
        self._dirs = config.include_dirs
        self._prefixes = tuple(prefix.encode() for prefix in config.include_prefixes)
        self._quoted = config.quoted_includes == "track"
        self._known: dict[str, str] = {}

    def digest(self, source: bytes) -> str:
        """The digest of ``source``: its bytes, then its tracked includes in textual order.

        Raises:
            IncludeError: a tracked header is missing or circular, or an include is not ``<name>``.
        """
        return self._digest(source, "the source", None, ())

    def forget(self) -> None:
        """Drop remembered headers, so that edited ones are read again."""
        self._known.clear()

    def _digest(
        self, code: bytes, origin: str, folder: str | None, visiting: tuple[str, ...]
    ) -> str:
        if len(visiting) > MAX_DEPTH:
            raise IncludeError(f"includes nest deeper than {MAX_DEPTH}: {origin}")
        parts = [code]
        for opener, name in scan(code, origin):
            path = self._resolve(opener, name, origin, folder)
            if path is not None:
                parts.append(self._header(path, visiting).encode())
        return content_digest(*parts)

    def _header(self, path: str, visiting: tuple[str, ...]) -> str:
        known = self._known.get(path)
        if known is not None:
            return known
        if path in visiting:
            raise IncludeError("circular include: " + " -> ".join([*visiting, path]))
        try:
            code = read_file(Path(path))
        except OSError as error:
            raise IncludeError(f"failed to open {path} for reading: {error.strerror}") from error
        result = self._digest(code, path, os.path.dirname(path), (*visiting, path))
        self._known[path] = result
        return result

    def _resolve(self, opener: bytes, name: bytes, origin: str, folder: str | None) -> str | None:
        text = os.fsdecode(name)
        if opener == b'"':
            if not self._quoted:
                raise IncludeError(f'non-standard include in {origin}: "{text}", wanted <{text}>')
            if folder is not None:
                beside = os.path.normpath(os.path.join(folder, text))
                if os.path.isfile(beside):
                    return beside
        if not name.startswith(self._prefixes):
            return None
        for directory in self._dirs:
            path = os.path.join(directory, text)
            if os.path.isfile(path):
                return os.path.normpath(path)
        searched = ", ".join(map(str, self._dirs)) or "no include directory"
        raise IncludeError(f"failed to open <{text}>, included by {origin}: not in {searched}")


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
