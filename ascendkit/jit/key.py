"""From a kernel's text and options to the digest that names it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Generic

from ascendkit.jit.backend import Backend, Toolkit
from ascendkit.jit.config import Config
from ascendkit.jit.digest import Fnv, content_digest, digest
from ascendkit.jit.files import read_file, stamp
from ascendkit.jit.includes import IncludeTracker
from ascendkit.jit.options import CompilerT

_RACY_NS = 100_000_000
"""A file changed this recently may change again unseen, so its digest is not remembered."""


class StaleKey(Exception):
    """What a key was computed from has changed since."""


class FileDigests:
    """Digests of file contents, remembered as long as a file's inode, size and times stay."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def digest(self, path: Path, what: str) -> str:
        """The content digest of ``path``.

        Raises:
            ValueError: it cannot be read.
        """
        try:
            now = stamp(path)
            known = self._known.get(str(path))
            if known is not None and known[0] == now:
                return known[1]
            result = content_digest(read_file(path))
        except OSError as error:
            reason = error.strerror
            raise ValueError(f"{what}: failed to open {path} for reading: {reason}") from error
        if time.time_ns() - max(now[-2:]) > _RACY_NS:
            self._known[str(path)] = (now, result)
        return result

    def forget(self) -> None:
        """Drop everything."""
        self._known.clear()


class KeyMaker(Generic[CompilerT]):
    """Computes keys for one backend and configuration.

    In order: extra signature, compiler identity, each group of effective flags, contents of link
    inputs, post-compile hook, source with tracked includes; each framed by its length. Tag, folder
    names, dumps, launch options and plain environment variables stay out.
    """

    def __init__(self, backend: Backend[CompilerT, Any], config: Config) -> None:
        self._backend = backend
        self._config = config
        self._includes = IncludeTracker(config)
        self._files = FileDigests()
        self._fixed: dict[CompilerT, Fnv] = {}

    def digest(self, source: str, options: CompilerT, toolkit: Toolkit) -> str:
        """The 32-digit digest.

        Raises:
            ValueError: a header, hook or link input cannot be read, or ``source`` is not text.
        """
        try:
            code = source.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"source: got a lone surrogate at {error.start}") from error
        state = self._head(options, toolkit).copy()
        inputs = [self._files.digest(path, "link input") for path in self._backend.inputs(options)]
        state.update(digest(*inputs))
        state.update(self._hook(options.post_hook))
        state.update(self._includes.digest(code))
        return state.hexdigest()

    def forget(self) -> None:
        """Read everything anew."""
        self._includes.forget()
        self._files.forget()
        self._fixed.clear()

    def _head(self, options: CompilerT, toolkit: Toolkit) -> Fnv:
        state = self._fixed.get(options)
        if state is None:
            state = Fnv().update(self._config.extra_signature)
            state.update(digest(*toolkit.identity))
            for group in self._backend.flags(options, toolkit):
                state.update(digest(*group))
            self._fixed[options] = state
        return state

    def _hook(self, name: str) -> str:
        if not name:
            return ""
        return digest(name, self._files.digest(hook_path(self._config, name), "post hook"))


def hook_path(config: Config, name: str) -> Path:
    """Where the hook called ``name`` lies.

    Raises:
        ValueError: it is not below the library's root.
    """
    path = Path(os.path.normpath(config.library_root / name))
    if os.path.isabs(name) or config.library_root not in path.parents:
        raise ValueError(
            f"post hook: got {name!r}, wanted a path inside the library root {config.library_root}"
        )
    return path
