"""Hints in error texts: the nearest legal name where one is near, none where none is."""

from __future__ import annotations

import pytest

from ascendkit.errors import nearest, unknown

NAMES = ("ascend_950dt", "b200", "h200", "h800")


@pytest.mark.parametrize(
    ("got", "legal", "near"),
    [
        ("h20", NAMES, "h200"),
        ("H-200", NAMES, "h200"),
        ("ascend", NAMES, "ascend_950dt"),
        ("950", NAMES, "ascend_950dt"),
        ("gate", ("tilekernels.topk_gate", "topk.radix_select"), "tilekernels.topk_gate"),
        ("lib.bee.cost", ("kit.a", "lib.bee"), "lib.bee"),
        ("7", ("1", "2", "8", "32"), "8"),
        ("0.9", ("0.5", "1"), "1"),
        ("frobnicate", NAMES, ""),
        ("", NAMES, ""),
        ("zz", ("x", "y"), ""),
        ("nan", ("1", "2"), ""),
        ("ab", ("cab-driver",), ""),
        ("x", (), ""),
        ("7", (), ""),
    ],
)
def test_only_what_is_near_is_suggested(got: str, legal: tuple[str, ...], near: str) -> None:
    assert nearest(got, legal) == near


def test_far_off_names_get_the_list_alone() -> None:
    assert str(unknown("hardware", "frobnicate", NAMES)) == (
        "hardware: got 'frobnicate', wanted one of ascend_950dt, b200, h200, h800"
    )
    assert str(unknown("hardware", "h2O0", NAMES)).endswith("h800; nearest: h200")
    assert str(unknown("op", "x", ())) == "op: got 'x', but nothing is available"
