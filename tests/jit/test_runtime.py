"""The runtime on a fake compiler: hits, isolation, diagnostics, and what is left on disk."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import stat
from pathlib import Path

import pytest

from ascendkit.jit import (
    Config,
    HostBackend,
    HostLaunchOptions,
    HostOptions,
    Kernel,
    LaunchError,
    LazyInit,
    LoadError,
    Runtime,
    get_jit,
    shared_runtime,
)
from ascendkit.jit.manifest import MARKER

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler


def test_a_hit_runs_no_compiler(make: Make, fake: FakeCompiler) -> None:
    first = make()
    kernel = first.compile("k", "int x;")
    assert first.compile("k", "int x;") is kernel
    assert first.compile("k", "int " + "x;") is kernel
    assert fake.runs == 1
    again = make().compile("k", "int x;")
    assert (again.name, again.path) == (kernel.name, kernel.path)
    assert (fake.runs, fake.asked) == (1, 2)


def test_nothing_happens_before_the_first_key(home: Path, tmp_path: Path) -> None:
    environ = {"PATH": "/none", "T_JIT_CACHE_DIR": str(tmp_path / "c")}
    runtime = Runtime(HostBackend("/no/such/compiler"), Config(home, "T"), environ=environ)
    assert runtime.default_compiler_options.standard == 20
    assert not (tmp_path / "c").exists()


def test_what_an_entry_holds(make: Make, home: Path) -> None:
    runtime = make(extra_signature="sig", include_dirs=["/x"], include_prefixes=["p/"])
    options = HostOptions(extra_flags=["-DA=编 译"])
    source = "int x; // é\n"
    folder = runtime.compile_without_load("k", source, options)
    name = f"k.{runtime.cache_key(source, options)}"
    assert folder == home / "cache root" / "cache" / name
    assert sorted(os.listdir(folder)) == [MARKER, "kernel.cpp", "kernel.so", "meta.json"]
    assert (folder / "kernel.cpp").read_text() == source
    record = json.loads((folder / "meta.json").read_text())
    assert list(record) == ["command", "config", "compiler_info", "compiler_options"]
    assert list(record["config"]) == [
        "python_library_root",
        "extra_signature",
        "include_dirs",
        "include_prefixes",
    ]
    assert list(record["compiler_info"]) == ["path", "version", "target", "family"]
    assert set(record["compiler_options"]) == {f.name for f in dataclasses.fields(HostOptions)}
    assert record["compiler_options"]["extra_flags"] == ["-DA=编 译"]
    assert "'-DA=编 译'" in record["command"]
    words = shlex.split(record["command"])
    assert words[0] == record["compiler_info"]["path"]
    assert not any("cache root" in word for word in words)


def test_a_hit_changes_no_metadata(make: Make, home: Path) -> None:
    folder = make().compile_without_load("k", "int x;")
    before = {name: (folder / name).stat().st_mtime_ns for name in ("meta.json", "kernel.so")}
    other = make(library_root="/", extra_signature="").compile_without_load("k", "int x;")
    assert other == folder
    assert before == {name: (folder / name).stat().st_mtime_ns for name in before}


@pytest.mark.parametrize("tag", ["", "a b", "a.b", "a/b", "..", "ä", "a-b", "x" * 161])
def test_bad_tags(make: Make, fake: FakeCompiler, tag: str) -> None:
    runtime = make()
    for compile_ in (runtime.compile, runtime.compile_without_load):
        with pytest.raises(ValueError, match=r"cache tag.*nearest"):
            compile_(tag, "int x;")
    with pytest.raises(TypeError, match=r"tag: got bytes"):
        runtime.compile(b"k", "int x;")
    assert fake.runs == 0
    assert runtime.compile("x" * 160, "int x;").loaded


def test_several_libraries_in_one_process(make: Make, home: Path, fake: FakeCompiler) -> None:
    """Own roots, own defaults, own memory; a shared root shares the disk only."""
    environ = {"A_JIT_CACHE_DIR": str(home / "a"), "B_JIT_CACHE_DIR": str(home / "b")}
    one = make(env_prefix="A", environ=environ)
    two = make(env_prefix="B", environ=environ)
    one.default_compiler_options = dataclasses.replace(
        one.default_compiler_options, extra_flags=("-DONE",)
    )
    first, second = one.compile("k", "int x;"), two.compile("k", "int x;")
    assert first.name != second.name
    assert (len(entries(one)), len(entries(two)), fake.runs) == (1, 1, 2)
    twin = make(env_prefix="C", environ={"C_JIT_CACHE_DIR": str(home / "b")})
    third = twin.compile("k", "int x;")
    assert third is not second
    assert (third.path, fake.runs) == (second.path, 2)


def test_the_environment_is_read_once(make: Make, home: Path) -> None:
    environ = {"T_JIT_CACHE_DIR": str(home / "one"), "PATH": os.environ["PATH"]}
    runtime = Runtime(make().backend, Config(home, "T"), environ=environ)
    environ["T_JIT_CACHE_DIR"] = str(home / "two")
    environ["T_JIT_CPP_STANDARD"] = "nonsense"
    assert runtime.compile("k", "int x;").path.is_relative_to(home / "one")


@pytest.mark.parametrize("name", ["JIT_CPP_STANDARD", "JIT_DEBUG", "JIT_LOCK_TIMEOUT"])
def test_nonsense_in_the_environment_is_an_error(make: Make, name: str) -> None:
    with pytest.raises(ValueError, match=rf"T_{name}: invalid value 'many'"):
        make(environ={f"T_{name}": "many"})


def test_diagnostics(make: Make, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On a miss only, for the prefix that asked, and an explicit 0 beats the global 1."""
    environ = {"T_JIT_CACHE_DIR": str(home / "c"), "PATH": os.environ["PATH"]}
    runtime = Runtime(make().backend, Config(home, "T"), environ=environ)
    runtime.compile("k", "int a;")
    assert capfd.readouterr().err == ""
    environ |= {"T_JIT_PRINT_COMPILER_COMMAND": "1", "T_JIT_PRINT_LOAD_TIME": "yes"}
    runtime.compile("k", "int b;")
    printed = capfd.readouterr().err
    assert "kernel.cpp" in printed
    assert f"loaded k.{runtime.cache_key('int b;')} in " in printed
    runtime.compile("k", "int b;")
    assert capfd.readouterr().err == ""
    environ |= {"T_JIT_PRINT_LOAD_TIME": "0", "DJ_JIT_PRINT_LOAD_TIME": "1"}
    environ["U_JIT_PRINT_COMPILER_COMMAND"] = environ.pop("T_JIT_PRINT_COMPILER_COMMAND")
    runtime.compile("k", "int c;")
    assert capfd.readouterr().err == ""
    del environ["T_JIT_PRINT_LOAD_TIME"]
    runtime.compile("k", "int d;")
    assert "loaded" in capfd.readouterr().err


def test_a_second_root_is_only_read(make: Make, home: Path, fake: FakeCompiler) -> None:
    folder = make(environ={"T_JIT_CACHE_DIR": str(home / "shared")}).compile_without_load("k", "a")
    (folder / MARKER).chmod(stat.S_IRUSR)
    before = sorted(str(path) for path in (home / "shared").rglob("*"))
    both = {"T_JIT_CACHE_DIR": f"{home / 'mine'}:{home / 'shared'}"}
    assert make(environ=both).compile("k", "a").path.parent == folder
    assert not (home / "mine").exists()
    assert make(environ=both).compile("k", "b").path.is_relative_to(home / "mine")
    assert sorted(str(path) for path in (home / "shared").rglob("*")) == before
    assert fake.runs == 2


def test_launch_validation(make: Make) -> None:
    runtime = make()
    kernel = runtime.compile("k", "int x;")
    with pytest.raises(LaunchError, match=r"kernel must not be null"):
        runtime.launch(None, HostLaunchOptions(num_blocks=1))
    with pytest.raises(TypeError, match=r"kernel: got str, wanted Kernel"):
        runtime.launch("k", HostLaunchOptions(num_blocks=1))
    with pytest.raises(ValueError, match=r"num_blocks must be specified"):
        runtime.launch(kernel, HostLaunchOptions())
    with pytest.raises(TypeError, match=r"c_float"):
        runtime.launch(kernel, HostLaunchOptions(num_blocks=1), 1.5)
    runtime.default_launch_options = HostLaunchOptions(num_blocks=2, num_threads=1)
    runtime.launch(kernel, HostLaunchOptions(), None)
    assert isinstance(kernel, Kernel)


def test_entries_removed_behind_our_back(make: Make, fake: FakeCompiler) -> None:
    runtime = make()
    kernel = runtime.compile("k", "int x;")
    runtime.disk.evict(kernel.path.parent)
    assert runtime.compile("k", "int x;") is kernel, "what is loaded stays"
    assert make().compile("k", "int x;").path.exists()
    assert fake.runs == 2


def test_an_entry_that_goes_between_proof_and_loading(make: Make, fake: FakeCompiler) -> None:
    runtime = make()
    backend = runtime.backend
    load, thefts = backend.load, [1]

    def steal(artifact: Path, image: bytes, options: HostOptions):
        if thefts:
            thefts.pop()
            runtime.disk.evict(artifact.parent)
            raise LoadError("stolen")
        return load(artifact, image, options)

    backend.load = steal
    assert runtime.compile("k", "int x;").loaded
    assert fake.runs == 2


def test_a_spoiled_artifact_is_rebuilt_never_loaded(make: Make, fake: FakeCompiler) -> None:
    path = make().compile("k", "int x;").path
    good = path.read_bytes()
    for spoiled in (
        good[:-1],
        b"",
        good.replace(b"int x;", b"int y;"),
        b"\x7fELF" + good[4:] + b"!",
    ):
        path.unlink()
        path.write_bytes(spoiled)
        assert make().compile("k", "int x;").path.read_bytes() == good
    assert fake.runs == 5
    assert leftovers(make()) == []


def test_headers_are_read_anew_when_told(make: Make, home: Path, fake: FakeCompiler) -> None:
    (home / "ak").mkdir()
    (home / "ak" / "a.h").write_text("1")
    runtime = make(include_dirs=[home], include_prefixes=["ak/"])
    first = runtime.compile("k", "#include <ak/a.h>")
    (home / "ak" / "a.h").write_text("2")
    assert runtime.compile("k", "#include <ak/a.h>") is first
    runtime.forget_includes()
    assert runtime.compile("k", "#include <ak/a.h>").name != first.name
    assert fake.runs == 2


def test_many_sources_do_not_pile_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ascendkit.jit.runtime._REMEMBERED", 4)
    runtime = make()
    kernels = {text: runtime.compile("k", text) for text in "abcdef"}
    assert all(runtime.compile("k", text) is kernel for text, kernel in kernels.items())


def test_get_jit(home: Path, monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    monkeypatch.setattr("ascendkit.jit.shared_runtime", LazyInit(lambda: make()))
    from ascendkit import jit

    assert jit.get_jit() is jit.get_jit()
    assert isinstance(shared_runtime, LazyInit)
    assert get_jit.__doc__


def test_the_shared_runtime_writes_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCENDKIT_JIT_CACHE_DIR", str(tmp_path / "x"))
    monkeypatch.setattr(shared_runtime, "_value", None)
    kernel = get_jit().compile("k", "ASCENDKIT_KERNEL int f() { return 6; }")
    assert (kernel(), kernel.path.is_relative_to(tmp_path / "x")) == (6, True)
    monkeypatch.setattr(shared_runtime, "_value", None)


def test_reload_after_everything_was_forgotten(make: Make) -> None:
    runtime = make()
    kernel = runtime.compile("k", "int x;")
    kernel.unload()
    runtime.forget_includes()
    assert runtime.compile("k", "int x;").loaded


def test_names_that_are_not_text(make: Make, home: Path, fake: FakeCompiler) -> None:
    """File names are bytes; those that are no UTF-8 work, and differ."""
    odd = home / os.fsdecode(b"odd \xff\xfe")
    odd.mkdir()
    fake.path.rename(odd / "g++")
    for name in ("banner", "template.so"):
        (fake.folder / name).rename(odd / name)
    environ = {"T_JIT_CACHE_DIR": str(odd / "root"), "CPATH": os.fsdecode(b"\xff")}
    config = {"include_dirs": [odd], "backend": HostBackend(str(odd / "g++")), "environ": environ}
    runtime = make(**config)
    options = [HostOptions(extra_flags=[os.fsdecode(f)]) for f in (b"-D\xff", b"-D\xfe")]
    kernels = [runtime.compile("k", "int x;", option) for option in options]
    assert kernels[0].name != kernels[1].name
    assert make(**config).compile("k", "int x;", options[0]).path == kernels[0].path
    assert runtime.par_compile([("p", "int y;")])[0].is_relative_to(odd)
