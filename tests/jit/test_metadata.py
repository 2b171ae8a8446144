"""meta.json: which values it takes and how they look."""

from __future__ import annotations

import json

import pytest

from ascendkit.jit.builder import dump


def test_round_trip() -> None:
    record = {
        "text": 'quote " back \\ line \n tab \t bell \a nul \0 é 编译 \U0001f600',
        "bytes that are no text": "a\udcffb",
        "big": (1 << 64) - 1,
        "small": -(1 << 63),
        "flags": [True, False, None, [], {}],
        "nested": {"a": {"b": ["c"]}},
    }
    data = dump(record)
    assert data.isascii()
    assert data.endswith(b"}\n")
    assert json.loads(data) == record


def test_unset_is_null() -> None:
    assert b'"x": null' in dump({"x": None})


@pytest.mark.parametrize("value", [1.0, float("nan"), b"x", {1}, (1,), object(), {1: 2}])
def test_other_types(value: object) -> None:
    with pytest.raises(TypeError, match=r"metadata: got"):
        dump({"x": [value]})


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_integers_beyond_64_bits(value: int) -> None:
    with pytest.raises(ValueError, match=r"at most 64 bits"):
        dump({"x": value})
