"""Compilers that fail in every way, each followed by recovery; and post-compile hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions, LoadError, ToolkitError

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler

BAD = {
    "fails": ("echo broken; exit 3", "exit code 3"),
    "fails after writing": ("make; exit 1", "exit code 1"),
    "is killed": ("kill -9 $$", "exit code 137"),
    "writes nothing": (":", "did not produce a valid kernel.so"),
    "writes an empty file": (': > "$out"', "did not produce a valid kernel.so"),
    "writes text": ('echo hello > "$out"', "did not produce a valid kernel.so"),
    "writes half": ('head -c 40 "$here/template.so" > "$out"', "did not produce a valid"),
    "makes a folder": ('mkdir "$out"', "did not produce a valid kernel.so"),
    "makes a pipe": ('mkfifo "$out"', "did not produce a valid kernel.so"),
}


@pytest.mark.parametrize(("script", "message"), BAD.values(), ids=BAD.keys())
def test_bad_compilers(make: Make, fake: FakeCompiler, script: str, message: str) -> None:
    runtime = make()
    fake.act(script)
    for attempt in (1, 2):
        with pytest.raises(CompileError, match=rf"kernel 'k': .*{message}"):
            runtime.compile("k", "int x;")
        assert fake.runs == attempt, "a failure is not remembered"
    assert (entries(runtime), leftovers(runtime)) == ([], [])
    fake.behave()
    assert runtime.compile("k", "int x;").loaded
    assert fake.runs == 3


def test_a_compiler_that_vanishes(make: Make, fake: FakeCompiler) -> None:
    runtime = make()
    runtime.compile("k", "int x;")
    fake.path.rename(fake.folder / "away")
    with pytest.raises(ToolkitError, match=r"is not executable"):
        runtime.compile("k", "int y;")
    (fake.folder / "away").rename(fake.path)
    assert runtime.compile("k", "int y;").loaded


def test_metadata_of_the_compilers_own(make: Make, fake: FakeCompiler) -> None:
    fake.act("make; echo mine > meta.json")
    runtime = make()
    with pytest.raises(CompileError, match=r"left a meta.json of its own"):
        runtime.compile("k", "int x;")
    assert (entries(runtime), leftovers(runtime)) == ([], [])
    fake.behave()
    assert runtime.compile("k", "int x;").loaded


def test_folders_are_proved_too(make: Make, fake: FakeCompiler) -> None:
    fake.act("make; mkdir -p asm/deep; echo text > asm/deep/x.s")
    folder = make().compile("k", "int x;").path.parent
    assert (folder / "asm" / "deep" / "x.s").read_text() == "text\n"
    (folder / "asm" / "deep" / "x.s").write_text("tent\n")
    assert make().compile("k", "int x;").loaded
    assert fake.runs == 2


def test_warnings_do_not_fail(make: Make, fake: FakeCompiler) -> None:
    fake.act("echo 'warning: x' >&2; make")
    assert make().compile("k", "int x;").loaded


def test_megabytes_of_output(make: Make, fake: FakeCompiler) -> None:
    fake.act("yes 'error: again' | head -c 5000000; exit 1")
    with pytest.raises(CompileError) as caught:
        make().compile("k", "int x;")
    assert len(str(caught.value)) < 5000
    assert len(caught.value.output) == 5_000_000


def test_scratch_files_stay_in_the_build(make: Make, fake: FakeCompiler, home: Path) -> None:
    """The compiler's own temporaries die with an abandoned build."""
    fake.act('echo "$TMPDIR" > "$here/told"; echo "$PWD" >> "$here/told"; make')
    make().compile("k", "int x;")
    told = (fake.folder / "told").read_text().splitlines()
    assert told[0] == told[1]
    assert told[0].startswith(str(home / "cache root" / "tmp"))


HOOK = "import sys; p = sys.argv[1]; d = open(p, 'rb').read(); open(p, 'wb').write(d + b'{}')"


def hook(home: Path, text: str, name: str = "sub dir/hook.py") -> str:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return name


def test_a_hook_edits_the_artifact(make: Make, home: Path, fake: FakeCompiler) -> None:
    name = hook(home, HOOK.format("HOOKED"))
    options = HostOptions(post_hook=name)
    kernel = make().compile("k", "int x;", options)
    assert kernel.path.read_bytes().endswith(b"int x;HOOKED")
    assert make().compile("k", "int x;", options).path == kernel.path
    assert fake.runs == 1
    assert "hook.py" not in (kernel.path.parent / "meta.json").read_text().split('"config"')[0]


def test_a_hooks_name_and_contents_are_in_the_key(make: Make, home: Path) -> None:
    one, two = hook(home, "pass", "a.py"), hook(home, "pass", "b.py")
    keys = [make().cache_key("x", HostOptions(post_hook=name)) for name in ("", one, two)]
    hook(home, "pass # changed", "a.py")
    keys.append(make().cache_key("x", HostOptions(post_hook=one)))
    assert len(set(keys)) == 4


def test_a_hook_belongs_to_its_library(make: Make, home: Path) -> None:
    for root in ("one", "two"):
        (home / root).mkdir()
        (home / root / "h.py").write_text(HOOK.format(root))
    paths = []
    for root in ("one", "two"):
        kernel = make(library_root=home / root).compile("k", "x", HostOptions(post_hook="h.py"))
        assert kernel.path.read_bytes().endswith(root.encode())
        paths.append(kernel.path)
    assert paths[0] != paths[1]


@pytest.mark.parametrize("name", ["missing.py", "../out.py", "/etc/passwd", ".", "a/../../x"])
def test_hooks_that_cannot_be(make: Make, home: Path, fake: FakeCompiler, name: str) -> None:
    with pytest.raises(ValueError, match=r"post hook: "):
        make().compile("k", "x", HostOptions(post_hook=name))
    assert fake.runs == 0


def test_a_failing_hook(make: Make, home: Path) -> None:
    runtime = make()
    name = hook(home, "import sys; print('no good'); sys.exit(7)")
    with pytest.raises(CompileError, match=r"(?s)exit code 7.*no good"):
        runtime.compile("k", "x", HostOptions(post_hook=name))
    assert (entries(runtime), leftovers(runtime)) == ([], [])
    assert runtime.compile("k", "x").loaded


def test_a_hook_that_ruins_the_artifact(make: Make, home: Path) -> None:
    """It fails to load every time: a kernel that did not load is not kept in memory."""
    runtime = make()
    options = HostOptions(post_hook=hook(home, "import sys; open(sys.argv[1], 'w').write('x')"))
    for _ in range(2):
        with pytest.raises(LoadError, match=r"not an ELF file"):
            runtime.compile("k", "x", options)
    assert runtime.compile("k", "x").loaded


def test_a_default_hook(make: Make, home: Path) -> None:
    runtime = make()
    runtime.default_compiler_options = HostOptions(
        post_hook=hook(home, HOOK.format("DEFAULT"))
    ).over(runtime.default_compiler_options)
    assert runtime.compile("k", "x").path.read_bytes().endswith(b"DEFAULT")
    kernel = runtime.compile("k", "x", HostOptions(post_hook=None))
    assert kernel.path.read_bytes().endswith(b"DEFAULT")
    plain = runtime.compile("k", "x", HostOptions(post_hook=""))
    assert not plain.path.read_bytes().endswith(b"DEFAULT")
