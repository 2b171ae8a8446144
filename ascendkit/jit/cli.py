"""Commands over cache roots: ls, verify, prune, warm, bench."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

from ascendkit.cli import HELP, USAGE_ERROR
from ascendkit.errors import bad_value, unknown
from ascendkit.jit.environment import Environment

USAGE = """\
usage: python -m ascendkit.jit COMMAND [key=value ...]

  ls        list the entries of every root
  verify    check every file of every entry; exit 1 if one is damaged
  prune     remove unsound entries and abandoned temporaries
              older_than=30d  also what was not used for so long (s, m, h, d, w)
              max_size=2G     then the least recently used, until the rest fits (K, M, G, T)
              dry_run=true    only tell
  warm      compile again what a root remembers and no longer has, e.g. after a compiler update;
            exit 1 if something does not compile
              workers=4       processes, by default one a CPU
              newer_than=30d  only what was compiled so recently
  bench     time hits, keys, builds and launches
              out=FILE.jsonl  append the records to a file

every command: root=DIR[:DIR...] (default: ASCENDKIT_JIT_CACHE_DIR, DJ_JIT_CACHE_DIR, ~/.dj)
               output=table|json
exit status: 0 done, 1 findings, 2 wrong usage"""

PREFIX = "ASCENDKIT"
_KEYS = {
    "ls": ("root", "output"),
    "verify": ("root", "output"),
    "prune": ("root", "output", "older_than", "max_size", "dry_run"),
    "warm": ("root", "output", "workers", "newer_than"),
    "bench": ("output", "out"),
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def main(argv: list[str]) -> int:
    """Run one command; returns the exit status.

    Raises:
        ValueError: the command line makes no sense.
    """
    if not argv or argv[0] in HELP:
        print(USAGE, file=sys.stdout if argv else sys.stderr)
        return 0 if argv else USAGE_ERROR
    from ascendkit.jit import actions

    if isinstance(sys.stdout, TextIOWrapper):
        # A root's name need not be text.
        sys.stdout.reconfigure(errors="backslashreplace")
    command, settings = _parse(argv)
    action: Callable[[Settings], int] = getattr(actions, command)
    return action(settings)


class Settings:
    """The ``key=value`` arguments of a command."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    @property
    def json(self) -> bool:
        """Whether ``output=json`` was asked for."""
        return self._choice("output", ("table", "json")) == "json"

    def roots(self) -> tuple[Path, ...]:
        """The cache roots to look at."""
        environ: dict[str, str] = dict(os.environ)
        if "root" in self._values:
            environ[f"{PREFIX}_JIT_CACHE_DIR"] = self._values["root"]
        return Environment(PREFIX, environ).cache_roots()

    def seconds(self, key: str) -> float | None:
        """A duration like ``30d``, or None."""
        return self._scaled(key, _SECONDS, "a duration like 90s, 12h or 30d")

    def bytes(self, key: str) -> int | None:
        """A size like ``2G``, or None."""
        value = self._scaled(key, _BYTES, "a size like 500M or 2G")
        return None if value is None else int(value)

    def count(self, key: str) -> int | None:
        """A positive integer, or None."""
        text = self._values.get(key)
        if text is None:
            return None
        if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
            raise bad_value(key, text, "a positive integer", 1)
        return int(text)

    def flag(self, key: str) -> bool:
        """true or false."""
        return self._choice(key, ("false", "true")) == "true"

    def path(self, key: str) -> Path | None:
        """A path, or None."""
        return Path(self._values[key]) if self._values.get(key) else None

    def _choice(self, key: str, legal: tuple[str, ...]) -> str:
        value = self._values.get(key, legal[0])
        if value not in legal:
            raise unknown(key, value, legal)
        return value

    def _scaled(self, key: str, units: dict[str, int], wanted: str) -> float | None:
        text = self._values.get(key)
        if text is None:
            return None
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]?)", text)
        if match is None or match.group(2) not in units:
            raise bad_value(key, text, wanted)
        return float(match.group(1)) * units[match.group(2)]


def _parse(argv: list[str]) -> tuple[str, Settings]:
    command = argv[0]
    if command not in _KEYS:
        raise unknown("command", command, _KEYS)
    values: dict[str, str] = {}
    for argument in argv[1:]:
        key, equals, value = argument.partition("=")
        if not equals or not value:
            raise bad_value("argument", argument, "key=value (--help lists the keys)")
        if key not in _KEYS[command]:
            raise unknown(f"key of {command}", key, _KEYS[command])
        if key in values:
            raise bad_value(key, f"{values[key]} and {value}", "one value")
        values[key] = value
    return command, Settings(values)
