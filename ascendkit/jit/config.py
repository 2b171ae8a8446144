"""What a library tells its runtime once."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ascendkit.jit.environment import GLOBAL_PREFIX

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Config:
    """Settings of one library; paths are made normal, nothing is looked up on disk.

    Args:
        library_root: absolute folder of the library; post-compile hooks are relative to it.
        env_prefix: prefix of the library's environment variables; not part of any key.
        extra_signature: text that enters every key, e.g. a version of code not tracked otherwise.
        include_dirs: absolute folders, searched in order. Their *contents* enter keys, not their
            names, so a moved installation keeps its cache.
        include_prefixes: headers whose name starts with one of these are tracked.
        quoted_includes: ``reject`` makes ``#include "x"`` an error in tracked text; ``track`` also
            looks for it beside the file that includes it.

    Raises:
        ValueError: an empty or relative path, an empty, malformed or reserved prefix.
    """

    library_root: Path
    env_prefix: str
    extra_signature: str = ""
    include_dirs: tuple[Path, ...] = ()
    include_prefixes: tuple[str, ...] = ()
    quoted_includes: Literal["reject", "track"] = "reject"

    def __post_init__(self) -> None:
        for what in ("include_dirs", "include_prefixes"):
            if isinstance(getattr(self, what), (str, bytes)):
                raise TypeError(f"{what}: got one string, wanted a sequence")
        root = _absolute("Python library root", self.library_root)
        include_dirs = tuple(_absolute("include directory", path) for path in self.include_dirs)
        object.__setattr__(self, "library_root", root)
        object.__setattr__(self, "include_dirs", include_dirs)
        object.__setattr__(self, "include_prefixes", tuple(self.include_prefixes))
        if not self.env_prefix:
            raise ValueError("environment prefix must not be empty")
        if not _PREFIX.fullmatch(self.env_prefix):
            raise ValueError(f"environment prefix: got {self.env_prefix!r}, wanted an identifier")
        if self.env_prefix == GLOBAL_PREFIX:
            raise ValueError(
                f"environment prefix {GLOBAL_PREFIX!r} is reserved for global environment variables"
            )
        if not all(self.include_prefixes):
            raise ValueError("include prefix must not be empty: it would track system headers")
        if self.quoted_includes not in ("reject", "track"):
            raise ValueError(
                f"quoted_includes: got {self.quoted_includes!r}, wanted 'reject' or 'track'"
            )

    def metadata(self) -> dict[str, object]:
        """The part recorded beside an artifact: all but the environment prefix."""
        return {
            "python_library_root": str(self.library_root),
            "extra_signature": self.extra_signature,
            "include_dirs": [str(path) for path in self.include_dirs],
            "include_prefixes": list(self.include_prefixes),
        }


def _absolute(what: str, path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    # Path("") is spelled "." by pathlib, so an empty path given as a Path lands in the second rule.
    if not text:
        raise ValueError(f"{what} must not be empty")
    if not os.path.isabs(text):
        raise ValueError(
            f"{what} must be absolute: got {text!r}, nearest: {os.path.abspath(text)!r}"
        )
    return Path(os.path.normpath(text))
