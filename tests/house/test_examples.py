"""Examples run as a user runs them."""

from __future__ import annotations

import pytest

from tests.house.helpers import ROOT, python

SAYS = {
    "ascend_scale": ["__global__", "equal to 2 * x"],
    "ascend_missing_wait": [
        "as written: 0 findings",
        "AK-RACE-001 error",
        "T.copy(x[core * (rows // cores) + i, 0:width], tile)",
        "value = simd.vld(tile[j * LANES])",
    ],
}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_runs_and_says_what_it_did(path) -> None:
    pytest.importorskip("tilelang", reason="needs tilelang: pip install -e '.[emu]'")
    done = python(str(path), env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert "not run: " in done.stdout or all(text in done.stdout for text in SAYS[path.stem])
