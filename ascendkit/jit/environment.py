"""Environment variables: ``<PREFIX>_JIT_X`` before ``DJ_JIT_X`` before the default."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

GLOBAL_PREFIX = "DJ"
"""Prefix shared by every library built on this kind of runtime; no library may claim it."""

_TRUE = {"true", "yes"}
_FALSE = {"false", "no"}
_INTEGER = re.compile(r"[+-]?[0-9]+")


class Environment:
    """A view of ``variables`` through one library's prefix.

    Names are given without prefix (``JIT_CACHE_DIR``). A set but malformed value is a ValueError
    that names the variable: it is never replaced by the default.
    """

    def __init__(self, prefix: str, variables: Mapping[str, str]) -> None:
        self.prefix = prefix
        self.variables = variables

    def find(self, name: str) -> tuple[str, str] | None:
        """The full name and the value of the variable that decides, or None if unset."""
        for prefix in (self.prefix, GLOBAL_PREFIX):
            full = f"{prefix}_{name}"
            if full in self.variables:
                return full, self.variables[full]
        return None

    def text(self, name: str, default: str) -> str:
        """The value as it stands."""
        found = self.find(name)
        return found[1] if found else default

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean: true, false, yes, no, or an integer."""
        found = self.find(name)
        if found is None:
            return default
        value = found[1].lower()
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        if _INTEGER.fullmatch(value):
            return int(value) != 0
        raise _invalid(found, "true, false, yes, no or an integer")

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        """A decimal integer in ``low..high``."""
        found = self.find(name)
        if found is None:
            return default
        if _INTEGER.fullmatch(found[1]) and low <= int(found[1]) <= high:
            return int(found[1])
        raise _invalid(found, f"an integer in {low}..{high}")

    def cache_roots(self) -> tuple[Path, ...]:
        """Cache roots, the writable one first: JIT_CACHE_DIR (colon list), else ``$HOME/.dj``."""
        found = self.find("JIT_CACHE_DIR")
        if found is None:
            home = self.variables.get("HOME", "")
            if not home:
                raise ValueError(
                    f"HOME is not set: set it or {self.prefix}_JIT_CACHE_DIR to have a kernel cache"
                )
            return (Path(os.path.abspath(home), ".dj"),)
        elements = found[1].split(os.pathsep)
        if not all(elements):
            raise ValueError(f"{found[0]} contains an empty path: got {found[1]!r}")
        return tuple(Path(os.path.abspath(element)) for element in elements)


def _invalid(found: tuple[str, str], wanted: str) -> ValueError:
    return ValueError(f"{found[0]}: invalid value {found[1]!r}, wanted {wanted}")
