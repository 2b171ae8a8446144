"""A loaded kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ascendkit.jit.backend import Module
from ascendkit.jit.errors import LaunchError


class Kernel:
    """A kernel ready to launch; calling it calls its entry function directly.

    Attributes:
        name: ``<tag>.<digest>``.
        path: the compiled artifact.
        entry: name of its one kernel function; "" for a library.
    """

    def __init__(self, name: str, path: Path, module: Module, entry: str) -> None:
        self.name = name
        self.path = path
        self.entry = entry
        self._module: Module | None = module

    @property
    def loaded(self) -> bool:
        """False once unloaded."""
        return self._module is not None

    @property
    def module(self) -> Module:
        """The loaded artifact.

        Raises:
            LaunchError: the kernel was unloaded.
        """
        if self._module is None:
            raise LaunchError(f"kernel {self.name} must be loaded before launch: it was unloaded")
        return self._module

    def symbol(self, name: str) -> Any:
        """The exported function ``name``; on the host a ctypes function. It keeps the code alive.

        Raises:
            LoadError: no such function.
            LaunchError: the kernel was unloaded.
        """
        return self.module.symbol(name)

    def __call__(self, *args: object) -> Any:
        if not self.entry:
            raise LaunchError(f"{self.name} is a library: call kernel.symbol(name)(...)")
        return self.module.call(self.entry, args)

    def unload(self) -> None:
        """Let go of the code; harmless when repeated. The disk cache keeps it."""
        module, self._module = self._module, None
        if module is not None:
            module.close()

    def __repr__(self) -> str:
        return f"<Kernel {self.name}{'' if self.loaded else ' (unloaded)'}>"
