"""Config: normal paths, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendkit.jit import Config


def test_paths_become_normal() -> None:
    config = Config("/a/../b/./c/", "EP", include_dirs=["/x//y/"], include_prefixes=["p/"])
    assert config.library_root == Path("/b/c")
    assert config.include_dirs == (Path("/x/y"),)
    assert config.include_prefixes == ("p/",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"library_root": ""}, "Python library root must not be empty"),
        ({"library_root": "rel"}, "Python library root must be absolute: got 'rel', nearest: '/"),
        ({"library_root": Path()}, "Python library root must be absolute"),
        ({"env_prefix": ""}, "prefix must not be empty"),
        ({"env_prefix": "DJ"}, "reserved for global environment variables"),
        ({"env_prefix": "a b"}, "wanted an identifier"),
        ({"include_dirs": [""]}, "include directory must not be empty"),
        ({"include_dirs": ["x"]}, "include directory must be absolute"),
        ({"include_prefixes": [""]}, "include prefix must not be empty"),
        ({"quoted_includes": "maybe"}, "wanted 'reject' or 'track'"),
    ],
)
def test_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**{"library_root": "/", "env_prefix": "EP", **fields})


@pytest.mark.parametrize("field", ["include_dirs", "include_prefixes"])
def test_one_string_is_not_a_sequence(field: str) -> None:
    with pytest.raises(TypeError, match=r"wanted a sequence"):
        Config("/", "EP", **{field: "/x"})


def test_the_prefix_stays_out_of_the_metadata() -> None:
    keys = {"python_library_root", "extra_signature", "include_dirs", "include_prefixes"}
    assert set(Config("/", "EP").metadata()) == keys
