"""A compilation as data: what a worker process or a later warm-up needs to repeat it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from ascendkit.jit.backend import Backend
from ascendkit.jit.config import Config
from ascendkit.jit.options import CompilerT


@dataclass(frozen=True)
class Request(Generic[CompilerT]):
    """Backend, configuration, tag, source and complete options of one kernel."""

    backend: Backend[CompilerT, Any]
    config: Config
    tag: str
    source: str
    options: CompilerT

    def dump(self) -> str:
        """One line of JSON.

        Raises:
            ValueError: the backend's class cannot be imported by name.
        """
        kind = type(self.backend)
        if kind.__module__ == "__main__" or "<" in kind.__qualname__:
            raise ValueError(
                f"backend {kind.__qualname__}: got a class of {kind.__module__}, wanted one that"
                " another process can import"
            )
        record = {
            "backend": f"{kind.__module__}:{kind.__qualname__}",
            "arguments": self.backend.arguments(),
            "config": {
                **self.config.metadata(),
                "env_prefix": self.config.env_prefix,
                "quoted_includes": self.config.quoted_includes,
            },
            "tag": self.tag,
            "source": self.source,
            "options": self.options.metadata(),
        }
        return json.dumps(record, sort_keys=True)

    @classmethod
    def parse(cls, line: str) -> Request[Any]:
        """Undo ``dump``.

        Raises:
            ValueError: not a request, or one of a backend or option that is not here.
        """
        try:
            record = json.loads(line)
            module, _, name = record["backend"].partition(":")
            kind = getattr(importlib.import_module(module), name)
            settings = dict(record["config"])
            root = Path(settings.pop("python_library_root"))
            return Request(
                kind(**record["arguments"]),
                Config(root, **settings),
                record["tag"],
                record["source"],
                kind.options_type(**_given(record["options"])),
            )
        except (KeyError, TypeError, AttributeError, ImportError, ValueError) as error:
            raise ValueError(f"not a compile request: {type(error).__name__}: {error}") from error


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}
