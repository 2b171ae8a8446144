"""What the house tests share: the checkout, and fresh interpreters with chosen packages hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HIDE = """
import sys
from importlib.machinery import PathFinder
class Hidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {names!r}
        return None if hidden else PathFinder.find_spec(name, path, target)
sys.meta_path = [Hidden if f is PathFinder else f for f in sys.meta_path]
"""
"""Prelude that hides packages from imports and find_spec alike."""


def python(
    *argv: str,
    hidden: Sequence[str] = (),
    env: dict[str, str] | None = None,
    cwd: Path = ROOT,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on ``-c code`` or ``-m module args`` in a clean environment."""
    if hidden:
        kind, what, *rest = argv
        prelude = HIDE.format(names=set(hidden))
        if kind == "-m":
            run = f"import runpy; sys.argv = {['x', *rest]!r}; "
            what = run + f"runpy.run_module({what!r}, run_name='__main__', alter_sys=True)"
        argv = ("-c", f"{prelude}\n{what}")
    return subprocess.run(
        [sys.executable, *argv],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
        env=clean_env() | (env or {}),
    )


def clean_env() -> dict[str, str]:
    """This environment without what would steer the suite, the interpreter, or an inner make."""
    steering = ("ASCENDKIT_", "PYTHON", "MAKE", "MFLAGS", "VENV")
    return {k: v for k, v in os.environ.items() if not k.startswith(steering)}


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git knows or would add, so that a new file is judged too."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / line for line in sorted(set(listing.splitlines())) if (ROOT / line).is_file()]
