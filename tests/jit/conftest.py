"""Fixtures: a cache root at an awkward path, a counting fake compiler, runtimes on top of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascendkit.jit import Config, HostBackend, Runtime, disk

from .fakes import FakeCompiler

Make = Callable[..., Runtime[Any, Any]]


@pytest.fixture(scope="session", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["JIT_TEST_SCRATCH"] = str(tmp_path_factory.mktemp("jit"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder whose name has a blank, quotes and letters beyond ASCII."""
    path = tmp_path / "a höme 'of' \"编译\" $x"
    path.mkdir()
    return path


@pytest.fixture
def fake(home: Path) -> FakeCompiler:
    """A counting fake compiler."""
    return FakeCompiler(home / "fake bin")


@pytest.fixture
def make(home: Path, fake: FakeCompiler) -> Make:
    """``make(**config_fields, environ={...}, backend=...)``: a runtime, by default on the fake."""

    def build(
        *, environ: dict[str, str] | None = None, backend: object = None, **fields: Any
    ) -> Runtime[Any, Any]:
        fields.setdefault("library_root", home)
        fields.setdefault("env_prefix", "T")
        variables = {
            "PATH": os.environ["PATH"],
            "T_JIT_CACHE_DIR": str(home / "cache root"),
            **(environ or {}),
        }
        chosen: Any = backend or HostBackend(str(fake.path))
        return Runtime(chosen, Config(**fields), environ=variables)

    return build


@pytest.fixture
def real(make: Make) -> Make:
    """Like ``make``, on the machine's own compiler."""

    def build(**fields: Any) -> Runtime[Any, Any]:
        return make(backend=HostBackend(), **fields)

    return build


def entries(runtime: Runtime[Any, Any]) -> list[str]:
    """Names in the first root's cache folder."""
    folder = runtime.disk.roots[0] / "cache"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def leftovers(runtime: Runtime[Any, Any]) -> list[str]:
    """What lies in the first root's temporary and lock folders."""
    root = runtime.disk.roots[0]
    return sorted(
        p.name for d in ("tmp", "lock") if (root / d).exists() for p in (root / d).iterdir()
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk cache that waits for late files in microseconds."""
    monkeypatch.setattr(disk, "RETRY_DELAYS_S", (0.0001,) * 5)
