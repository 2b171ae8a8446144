"""Examples run as a user runs them."""

from __future__ import annotations

import pytest

from tests.house.helpers import ROOT, python


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_runs_and_says_what_it_did(path) -> None:
    pytest.importorskip("tilelang", reason="needs tilelang: pip install -e '.[emu]'")
    done = python(str(path), env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert "__global__" in done.stdout
    assert "equal to 2 * x" in done.stdout or "not run: " in done.stdout
