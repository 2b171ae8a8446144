"""Finding the host compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascendkit.jit import HostBackend, ToolkitError
from ascendkit.jit.environment import Environment

from .conftest import Make
from .fakes import GCC_BANNER, FakeCompiler

CLANG_BANNER = """Debian clang version 14.0.6
Target: aarch64-unknown-linux-gnu
Thread model: posix
InstalledDir: /usr/bin"""


def found(environ: dict[str, str], chosen: str = ""):
    return HostBackend(chosen).find_toolkit(
        Environment("T", {"PATH": os.environ["PATH"], **environ})
    )


def on_path(folder: Path, name: str, banner: str = GCC_BANNER) -> Path:
    compiler = FakeCompiler(folder, banner)
    return compiler.path.rename(folder / name)


def test_real_compiler() -> None:
    kit = found({})
    assert kit.path.is_absolute()
    assert kit.info["family"] in ("gcc", "clang")
    assert kit.arch
    assert not any(str(kit.path) in text for text in kit.identity)


def test_order_on_path(home: Path) -> None:
    plain = on_path(home / "1", "c++")
    assert found({"PATH": str(plain.parent)}).path == plain
    clang = on_path(home / "2", "clang++", CLANG_BANNER)
    kit = found({"PATH": f"{plain.parent}:{clang.parent}"})
    assert (kit.path, kit.info["family"], kit.arch) == (clang, "clang", "aarch64")


def test_precedence(home: Path) -> None:
    paths = [on_path(home / str(index), "cc") for index in range(3)]
    environ = {"DJ_JIT_HOST_COMPILER": str(paths[0])}
    assert found(environ).path == paths[0]
    environ["T_JIT_HOST_COMPILER"] = str(paths[1])
    assert found(environ).path == paths[1]
    assert found(environ, str(paths[2])).path == paths[2]
    environ["OTHER_JIT_HOST_COMPILER"] = environ["JIT_HOST_COMPILER"] = str(paths[2])
    assert found(environ).path == paths[1]


@pytest.mark.parametrize("value", ["", "/no/such/g++", "no-such-compiler", "/etc/passwd", "/usr"])
def test_set_but_unusable_is_an_error(value: str) -> None:
    with pytest.raises(ToolkitError, match=r"T_JIT_HOST_COMPILER: .*is not executable"):
        found({"T_JIT_HOST_COMPILER": value})


def test_none_at_all(home: Path) -> None:
    with pytest.raises(ToolkitError, match=r"no C\+\+ compiler.*T_JIT_HOST_COMPILER"):
        found({"PATH": str(home)})


@pytest.mark.parametrize("banner", ["", "hello", "gcc version unknown", "gcc version 12.2.0"])
def test_malformed_version(home: Path, banner: str) -> None:
    path = on_path(home / "b", "g++", banner)
    with pytest.raises(ToolkitError, match=r"failed to parse the compiler version"):
        found({}, str(path))


@pytest.mark.parametrize(
    ("line", "oldest"), [("gcc version 9.4.0", "10"), ("clang version 9.0", "10")]
)
def test_too_old(home: Path, line: str, oldest: str) -> None:
    path = on_path(home / "b", "g++", f"Target: x86_64-linux-gnu\n{line}")
    with pytest.raises(ToolkitError, match=f"must be at least {oldest}"):
        found({}, str(path))


def test_a_compiler_that_fails(home: Path) -> None:
    path = home / "broken"
    path.write_text("#!/bin/sh\necho licence expired; exit 3\n")
    path.chmod(0o755)
    with pytest.raises(ToolkitError, match=r"(?s)exit code 3.*licence expired"):
        found({}, str(path))


def test_the_folder_does_not_matter_but_what_bends_it_does(home: Path) -> None:
    one, two = on_path(home / "1", "g++"), on_path(home / "2", "g++")
    assert found({}, str(one)).identity == found({}, str(two)).identity
    bent = found({"CPATH": "/opt/include"}, str(one)).identity
    assert bent != found({}, str(one)).identity
    assert found({"CPATH": ""}, str(one)).identity == found({}, str(one)).identity


def test_found_late_once_and_again_after_a_failure(make: Make, home: Path) -> None:
    runtime = make(backend=HostBackend(str(home / "late" / "fake g++")))
    with pytest.raises(ToolkitError):
        runtime.compile("k", "x")
    assert not (home / "cache root").exists()
    compiler = FakeCompiler(home / "late")
    for text in ("x", "y"):
        runtime.compile("k", text)
    assert (compiler.asked, compiler.runs) == (1, 2)
