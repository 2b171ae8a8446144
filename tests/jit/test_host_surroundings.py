"""The host backend where files, descriptors and the environment misbehave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit.jit import HostOptions

from .conftest import Make
from .test_calls import FILL


def test_artifacts_do_not_depend_on_where_they_are_made(real: Make, home: Path) -> None:
    made = []
    for root in ("a", "a much longer name"):
        runtime = real(environ={"T_JIT_CACHE_DIR": str(home / root)})
        for options in (HostOptions(debug_info=True), HostOptions(extra_flags=["-g1"])):
            folder = runtime.compile_without_load("k", FILL, options)
            made.append((folder / "kernel.so").read_bytes())
    assert made[:2] == made[2:]


VICTIM = """
import gc, os, sys
from ascendkit.jit import Config, HostBackend, HostOptions, Runtime
environ = {**os.environ, "T_JIT_CACHE_DIR": sys.argv[1]}
runtime = Runtime(HostBackend(), Config("/", "T"), environ=environ)
text = 'extern "C" __attribute__((visibility("default"))) int base() { return 40; }'
part = runtime.compile("part", text, HostOptions(output="library"))
source = 'extern "C" int base(); ASCENDKIT_KERNEL int f(int x) { return base() + x; }'
kernel = runtime.compile("k", source, HostOptions(link_inputs=[part.path]))
for path in (kernel.path, part.path):
    os.truncate(path, 0)
print(kernel(2))
kernel.unload()
del kernel
gc.collect()
print("alive")
"""


def test_a_file_truncated_under_a_running_process(home: Path) -> None:
    """A mapped file would end the process by a bus error: in a call, or when it is unloaded."""
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, str(home / "r")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["42", "alive"], "")


def test_reused_descriptors_do_not_confuse_the_linker(real: Make) -> None:
    """Loaded copies get names of their own, also after their descriptors are gone."""
    runtime = real()
    kernels = [
        runtime.compile("k", f"ASCENDKIT_KERNEL int f() {{ return {n}; }}") for n in range(20)
    ]
    assert [kernel() for kernel in kernels] == list(range(20))
    before = len(os.listdir("/proc/self/fd"))
    runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 99; }")
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_copies_may_not_run(real: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    runtime = real()
    source = "ASCENDKIT_KERNEL int only_here() { return 8; }"
    folder = runtime.compile_without_load("k", source)
    monkeypatch.setattr("os.memfd_create", refuse)
    kernel = runtime.compile("k", source)
    assert kernel() == 8
    assert str(folder / "kernel.so") in Path("/proc/self/maps").read_text()


def test_debuggers_find_the_file(real: Make) -> None:
    kernel = real().compile(
        "k", "ASCENDKIT_KERNEL int f() { return 8; }", HostOptions(debug_info=True)
    )
    assert kernel() == 8
    assert str(kernel.path) in Path("/proc/self/maps").read_text()


def test_a_hostile_environment(real: Make, home: Path) -> None:
    """What other builds leave in the environment does not break ours, nor write files."""
    deps = home.parent / "deps"
    environ = {
        "DEPENDENCIES_OUTPUT": str(deps),
        "SUNPRO_DEPENDENCIES": "",
        "CPATH": ":::",
        "LC_ALL": "zz_ZZ",
        "LANGUAGE": "garbage",
        "PWD": "/lies",
        "TMPDIR": "/none",
        "GCC_COLORS": "x",
        "LD_RUN_PATH": "/none",
    }
    assert real(environ=environ).compile("k", "ASCENDKIT_KERNEL int f() { return 2; }")() == 2
    assert not deps.exists()


def test_a_deleted_working_folder(real: Make, home: Path) -> None:
    before = Path.cwd()
    gone = home / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert real().compile("k", "ASCENDKIT_KERNEL int f() { return 2; }")() == 2
    finally:
        os.chdir(before)
