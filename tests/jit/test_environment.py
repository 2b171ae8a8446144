"""Environment variables: which one decides, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendkit.jit.environment import Environment


def view(prefix: str = "EP", **variables: str) -> Environment:
    return Environment(prefix, variables)


def test_prefixed_before_global_before_default() -> None:
    assert view().text("JIT_X", "d") == "d"
    assert view(DJ_JIT_X="g").text("JIT_X", "d") == "g"
    assert view(DJ_JIT_X="g", EP_JIT_X="p").text("JIT_X", "d") == "p"


def test_other_prefixes_and_bare_names_are_not_read() -> None:
    assert view(DG_JIT_X="other", JIT_X="bare").text("JIT_X", "d") == "d"
    assert view("DG", DG_JIT_X="mine", EP_JIT_X="other").text("JIT_X", "d") == "mine"


def test_an_explicit_zero_beats_the_global_one() -> None:
    assert view(EP_JIT_DEBUG="0", DJ_JIT_DEBUG="1").flag("JIT_DEBUG") is False


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, True) for text in ("true", "yes", "1", "-3", "TRUE")]
    + [(text, False) for text in ("false", "no", "0", "00")],
)
def test_booleans(text: str, value: bool) -> None:
    assert view(EP_JIT_DEBUG=text).flag("JIT_DEBUG", not value) is value


@pytest.mark.parametrize("text", ["", " ", "on", "2x", "1.0", "tru", "0x1", "１"])
def test_bad_booleans_name_the_variable(text: str) -> None:
    with pytest.raises(ValueError, match=r"DJ_JIT_DEBUG: invalid value"):
        view(DJ_JIT_DEBUG=text).flag("JIT_DEBUG")


@pytest.mark.parametrize("text", ["0", "300", "65535", "+7"])
def test_integers(text: str) -> None:
    assert view(EP_JIT_N=text).integer("JIT_N", 1, low=0, high=65535) == int(text)


@pytest.mark.parametrize("text", ["", "-1", "65536", "1_0", " 1", "1 ", "1e3", "x", "٣"])
def test_bad_integers(text: str) -> None:
    with pytest.raises(ValueError, match=r"EP_JIT_N: invalid value"):
        view(EP_JIT_N=text).integer("JIT_N", 1, low=0, high=65535)


def test_cache_roots() -> None:
    assert view(HOME="/h").cache_roots() == (Path("/h/.dj"),)
    assert view(HOME="/h", DJ_JIT_CACHE_DIR="/g").cache_roots() == (Path("/g"),)
    both = view(EP_JIT_CACHE_DIR="/a b:/c/../d", DJ_JIT_CACHE_DIR="/g").cache_roots()
    assert both == (Path("/a b"), Path("/d"))


def test_relative_roots_are_fixed_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert view(EP_JIT_CACHE_DIR="x").cache_roots() == (tmp_path / "x",)


@pytest.mark.parametrize("value", ["", ":", "/a:", ":/a", "/a::/b"])
def test_empty_elements(value: str) -> None:
    with pytest.raises(ValueError, match=r"EP_JIT_CACHE_DIR contains an empty path"):
        view(EP_JIT_CACHE_DIR=value, HOME="/h").cache_roots()


@pytest.mark.parametrize("variables", [{}, {"HOME": ""}])
def test_no_home(variables: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"HOME is not set"):
        view(**variables).cache_roots()
