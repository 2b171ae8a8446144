"""A key always stands for what was compiled, whatever is edited meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions

from .conftest import Make, entries, leftovers
from .fakes import GCC_BANNER, FakeCompiler

SOURCE = "#include <ak/a.h>\n"
READ_HEADER = '{ cat "$here/template.so" kernel.cpp; cat "$here/../ak/a.h"; } > "$out"'


@pytest.fixture
def header(home: Path, fake: FakeCompiler) -> Path:
    """A tracked header that the fake compiler copies into its output."""
    path = home / "ak" / "a.h"
    path.parent.mkdir()
    path.write_text("old")
    fake.act(READ_HEADER)
    return path


@pytest.fixture
def tracking(make: Make, home: Path):
    return lambda: make(include_dirs=[home], include_prefixes=["ak/"])


def test_edited_after_it_was_first_read(tracking, header: Path) -> None:
    """The runtime remembers the old header; the compiler would read the new one."""
    runtime = tracking()
    assert runtime.compile("one", SOURCE).path.read_bytes().endswith(b"old")
    header.write_text("new")
    kernel = runtime.compile("two", SOURCE)
    assert kernel.path.read_bytes().endswith(b"new")
    header.write_text("old")
    other = tracking().compile("two", SOURCE)
    assert other.name != kernel.name
    assert other.path.read_bytes().endswith(b"old")


def test_edited_while_the_compiler_runs(tracking, header: Path, fake: FakeCompiler) -> None:
    """The first result has mixed origins and is dropped; the second is right."""
    edit = '[ -e "$here/edited" ] || printf new > "$here/../ak/a.h"; : > "$here/edited"'
    fake.act(f"{edit}; {READ_HEADER}")
    runtime = tracking()
    kernel = runtime.compile("k", SOURCE)
    assert kernel.path.read_bytes().endswith(b"new")
    assert kernel.name == f"k.{tracking().cache_key(SOURCE)}"
    assert (fake.runs, entries(runtime), leftovers(runtime)) == (2, [kernel.name], [])


def test_edited_all_the_time(tracking, header: Path, fake: FakeCompiler) -> None:
    fake.act(f'echo more >> "$here/../ak/a.h"; {READ_HEADER}')
    runtime = tracking()
    with pytest.raises(CompileError, match=r"'k': .*keep changing"):
        runtime.compile("k", SOURCE)
    assert (entries(runtime), leftovers(runtime)) == ([], [])


def test_removed_while_the_compiler_runs(tracking, header: Path, fake: FakeCompiler) -> None:
    fake.act(f'{READ_HEADER}; rm "$here/../ak/a.h"')
    runtime = tracking()
    with pytest.raises(ValueError, match=r"failed to open"):
        runtime.compile_without_load("k", SOURCE)
    assert (entries(runtime), leftovers(runtime)) == ([], [])


def test_link_inputs_and_hooks(make: Make, home: Path, fake: FakeCompiler) -> None:
    part = home / "part.o"
    part.write_text("old")
    (home / "hook.py").write_text("pass")
    options = HostOptions(link_inputs=[part], post_hook="hook.py")
    fake.act('[ -e "$here/edited" ] || printf new > "$here/../part.o"; : > "$here/edited"; make')
    kernel = make().compile("k", "x", options)
    assert kernel.name == f"k.{make().cache_key('x', options)}"
    assert fake.runs == 2
    fake.act('[ -e "$here/hooked" ] || echo "#" > "$here/../hook.py"; : > "$here/hooked"; make')
    kernel = make().compile("k", "y", options)
    assert kernel.name == f"k.{make().cache_key('y', options)}"
    assert fake.runs == 4


def test_the_compiler_is_updated_under_a_running_process(make: Make, fake: FakeCompiler) -> None:
    runtime = make()
    before = runtime.compile("k", "x")
    (fake.folder / "banner").write_text(GCC_BANNER.replace("12.2.0", "12.3.0") + "\n")
    fake.path.write_text(fake.path.read_text() + "\n# a new version\n")
    assert runtime.compile("k", "x") is before
    after = runtime.compile("l", "x")
    assert after.name.partition(".")[2] != before.name.partition(".")[2]
    assert after.name == f"l.{make().cache_key('x')}"
    os.utime(fake.path)
    assert runtime.compile("m", "x").name.partition(".")[2] == after.name.partition(".")[2]
