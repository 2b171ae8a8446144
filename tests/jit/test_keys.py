"""What moves a key and what must not."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
import shutil
import string
from pathlib import Path

import pytest

from ascendkit.jit import HostOptions
from ascendkit.jit.digest import content_digest, digest
from ascendkit.jit.files import stamp
from ascendkit.jit.key import FileDigests

from .conftest import Make
from .fakes import GCC_BANNER, FakeCompiler

SOURCE = "#include <ak/a.h>\nint x;"


def put(folder: Path, name: str, text: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_formula(make: Make) -> None:
    """Extra signature, compiler, flag groups, link inputs, hook, source: in that order."""
    runtime = make(extra_signature="sig")
    options = runtime.default_compiler_options
    groups = runtime.backend.flags(options, runtime.toolkit)
    expected = digest(
        "sig",
        digest(*runtime.toolkit.identity),
        *(digest(*group) for group in groups),
        digest(),
        "",
        content_digest(b"int x;"),
    )
    assert runtime.cache_key("int x;") == expected


def test_what_moves_a_key(make: Make, home: Path, fake: FakeCompiler) -> None:
    put(home, "inc/ak/a.h", "1")
    put(home, "hook.py", "1")
    put(home, "x.o", "1")
    put(home, "y.o", "2")
    config = {"include_dirs": [home / "inc"], "include_prefixes": ["ak/"]}
    base = make(**config).cache_key(SOURCE)
    assert make(**config).cache_key(SOURCE) == base
    keys = [base, make(**config, extra_signature="s").cache_key(SOURCE)]
    keys.append(make(**config).cache_key(SOURCE + " "))
    changes = [
        {"standard": 23},
        {"optimize_level": "3"},
        {"debug_info": True},
        {"output": "library"},
        {"output": "object"},
        {"extra_flags": ["-a", "-b"]},
        {"extra_flags": ["-a -b"]},
        {"extra_flags": ["-a"], "extra_link_flags": ["-b"]},
        {"flags": []},
        {"link_flags": []},
        {"extra_flags": ["-I", "/x"]},
        {"extra_flags": ["-march=native"]},
        {"link_inputs": [home / "x.o"]},
        {"link_inputs": [home / "x.o", home / "y.o"]},
        {"link_inputs": [home / "y.o", home / "x.o"]},
        {"post_hook": "hook.py"},
    ]
    keys += [make(**config).cache_key(SOURCE, HostOptions(**change)) for change in changes]
    put(home, "inc/ak/a.h", "2")
    keys.append(make(**config).cache_key(SOURCE))
    put(home, "inc/ak/a.h", "1")
    (fake.folder / "banner").write_text(GCC_BANNER.replace("12.2.0", "12.3.0"))
    keys.append(make(**config).cache_key(SOURCE))
    assert len(set(keys)) == len(keys)
    (fake.folder / "banner").write_text(GCC_BANNER)
    assert make(**config).cache_key(SOURCE) == base


def test_what_does_not(make: Make, home: Path) -> None:
    put(home, "inc/ak/a.h", "1")
    shutil.copytree(home / "inc", home / "moved")
    config = {"include_prefixes": ["ak/"]}
    base = make(include_dirs=[home / "inc"], **config).cache_key(SOURCE)
    assert make(include_dirs=[home / "moved"], **config).cache_key(SOURCE) == base
    assert make(include_dirs=["/none", home / "inc"], **config).cache_key(SOURCE) == base
    assert (
        make(include_dirs=[home / "inc"], include_prefixes=["ak/", "zz/"]).cache_key(SOURCE) == base
    )
    environ = {"U_JIT_CACHE_DIR": str(home / "u"), "U_JIT_PRINT_LOAD_TIME": "1", "LANG": "x"}
    fields = {"library_root": "/", "env_prefix": "U", "environ": environ, **config}
    other = make(include_dirs=[home / "inc"], **fields)
    assert other.cache_key(SOURCE) == base
    assert other.cache_key(SOURCE, HostOptions(dump_asm=True)) == base


def test_one_digest_for_all_tags(make: Make) -> None:
    runtime = make()
    folders = [runtime.compile_without_load(tag, "int x;") for tag in ("a", "b")]
    assert [f.name for f in folders] == [f"{t}.{runtime.cache_key('int x;')}" for t in ("a", "b")]


def test_link_inputs_are_known_by_content(make: Make, home: Path) -> None:
    one, two = put(home, "1/x.o", "same"), put(home, "2/y.o", "same")
    runtime = make()

    def key(path: Path) -> str:
        return runtime.cache_key("int x;", HostOptions(link_inputs=[path]))

    assert key(one) == key(two)
    before = key(one)
    put(home, "1/x.o", "SAME")
    assert key(one) != before
    stamp = one.stat()
    put(home, "1/x.o", "same")
    os.utime(one, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert key(one) == before, "a change within the clock's tick, same size and time, is seen"
    one.unlink()
    with pytest.raises(ValueError, match=r"link input: failed to open .*x.o for reading"):
        key(one)


def test_a_change_that_no_time_stamp_shows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file as young as the clock's tick is read each time; an older one is trusted."""
    path = put(home, "x.o", "one")
    same = stamp(path)
    digests = FileDigests()
    monkeypatch.setattr("ascendkit.jit.key.stamp", lambda path: same)
    before = digests.digest(path, "x")
    put(home, "x.o", "two")
    assert digests.digest(path, "x") != before
    put(home, "x.o", "one")
    monkeypatch.setattr("ascendkit.jit.key._RACY_NS", -1)
    assert digests.digest(path, "x") == before
    put(home, "x.o", "two")
    assert digests.digest(path, "x") == before


def test_relative_link_inputs_are_fixed_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert HostOptions(link_inputs=["x.o"]).link_inputs == (home / "x.o",)


def test_every_pair_of_options(make: Make) -> None:
    """The whole matrix of a few values of each option gives as many keys."""
    axes = {
        "standard": (17, 20),
        "optimize_level": ("0", "2", "3"),
        "debug_info": (False, True),
        "output": ("kernel", "library", "object"),
        "extra_flags": ((), ("-a",), ("-a", "-a"), ("-aa",)),
    }
    runtime = make()
    combinations = list(itertools.product(*axes.values()))
    keys = {
        runtime.cache_key("int x;", HostOptions(**dict(zip(axes, values))))
        for values in combinations
    }
    assert len(keys) == len(combinations)


def test_five_thousand_random_keys(make: Make, seed: int) -> None:
    draw = random.Random(seed)
    runtime = make()
    inputs = set()
    letters = string.ascii_letters + " \n\0é#<>"
    while len(inputs) < 5000:
        text = "".join(draw.choices(letters, k=draw.randrange(40)))
        flags = tuple("-" + "".join(draw.choices("ab ", k=2)) for _ in range(draw.randrange(2)))
        inputs.add((text, flags))
    keys = {runtime.cache_key(text, HostOptions(extra_flags=flags)) for text, flags in inputs}
    assert len(keys) == 5000


def test_defaults_are_part_of_the_key(make: Make) -> None:
    runtime = make()
    before = runtime.cache_key("int x;")
    runtime.default_compiler_options = dataclasses.replace(
        runtime.default_compiler_options, extra_flags=("-DLIBRARY",)
    )
    assert runtime.cache_key("int x;") != before
    assert runtime.cache_key("int x;", HostOptions(extra_flags=())) == before


def test_no_text(make: Make) -> None:
    with pytest.raises(ValueError, match=r"lone surrogate at 1"):
        make().compile("k", "x\ud800")
    with pytest.raises(TypeError, match=r"source: got bytes, wanted str"):
        make().compile("k", b"x")
