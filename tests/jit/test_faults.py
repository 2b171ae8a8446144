"""Disks that are full, read-only or not there: clear errors, nothing half done, recovery."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ascendkit.jit import CacheError, CompileError, Config, HostBackend, Runtime, files

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler

SMALL_FILES = """
import json, os, resource, signal, sys
from ascendkit.jit import CacheError, CompileError, Config, HostBackend, Runtime
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
compiler, root, limit = sys.argv[1:]
environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": root}
runtime = Runtime(HostBackend(compiler), Config("/", "T"), environ=environ)
runtime.toolkit
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit),) * 2)
try:
    runtime.compile_without_load("k", "int x;" * 2000)
except (CacheError, CompileError) as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(params=[errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def code(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "mkdir", "open"])
def test_every_call_may_fail(
    make: Make, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """The error names the root, says why and what to do; afterwards the same runtime works."""
    runtime = make()
    _ = runtime.toolkit
    root = str(runtime.disk.roots[0])
    real = getattr(os, call)

    def fail(first: object, *rest: object, **kwargs: object) -> object:
        inside = not isinstance(first, (str, os.PathLike)) or root in os.fspath(first)
        writing = call != "open" or bool(rest and int(rest[0]) & os.O_WRONLY)
        if inside and writing:
            raise OSError(code, os.strerror(code), first if isinstance(first, str) else None)
        return real(first, *rest, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(CacheError) as caught:
            runtime.compile("k", "int x;")
    message = str(caught.value)
    assert root in message
    assert os.strerror(code) in message
    assert "JIT_CACHE_DIR" in message
    assert entries(runtime) == []
    assert leftovers(runtime) == []
    assert runtime.compile("k", "int x;").loaded


@pytest.mark.parametrize("limit", [0, 1000, 13_000])
def test_a_limit_on_sizes(home: Path, fake: FakeCompiler, make: Make, limit: int) -> None:
    """A true limit on file sizes, met by our own files and by the compiler's."""
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, str(fake.path), str(home / "cache root"), str(limit)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    if limit < 12_000:
        assert done.stdout.startswith("CacheError cannot write to the kernel cache root")
        assert "File too large" in done.stdout
    else:
        assert done.stdout.startswith("CompileError kernel 'k'")
    assert (entries(make()), leftovers(make())) == ([], [])


def test_the_compilers_own_complaint_is_shown(make: Make, fake: FakeCompiler) -> None:
    fake.act('echo "fatal error: error writing to kernel.s: No space left on device"; exit 1')
    with pytest.raises(CompileError, match=r"No space left on device"):
        make().compile("k", "int x;")


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_root_that_is_a_file(make: Make, home: Path, fake: FakeCompiler, below: str) -> None:
    (home / "file").touch()
    runtime = make(environ={"T_JIT_CACHE_DIR": str(home / "file" / below)})
    with pytest.raises(CacheError, match=r"cannot write .*(Not a directory|File exists)"):
        runtime.compile("k", "int x;")
    assert fake.runs == 0


def test_hits_need_no_writing(
    make: Make, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache on a read-only medium serves what it has."""
    make().compile("k", "int x;")
    runtime = make()
    for call in ("mkdir", "rename", "unlink", "utime"):

        def fail(*args: object, **kwargs: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(os, call, fail)
    monkeypatch.setattr(files, "write_file", fail)
    assert runtime.compile("k", "int x;").loaded
    assert fake.runs == 1
    with pytest.raises(CacheError, match=r"Read-only file system"):
        runtime.compile("k", "int y;")


FORBIDDEN = """
import os, sys
from ascendkit.jit import CacheError, Config, HostBackend, Runtime
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": sys.argv[2]}
runtime = Runtime(HostBackend(sys.argv[1]), Config("/", "T"), environ=environ)
print(runtime.compile("k", "int x;").loaded)
try:
    runtime.compile("k", "int y;")
except CacheError as error:
    print(error)
"""


def test_a_root_that_forbids() -> None:
    """True permissions, met by a user who is not above them: hits work, misses say why."""
    with tempfile.TemporaryDirectory() as folder:
        fake = FakeCompiler(Path(folder, "bin"))
        root = Path(folder, "root")
        environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": str(root)}
        owner = Runtime(HostBackend(str(fake.path)), Config("/", "T"), environ=environ)
        owner.compile("k", "int x;")
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o555 if path.is_dir() or path == fake.path else 0o444)
        fake.folder.chmod(0o777)
        (fake.folder / "asked").chmod(0o666)
        try:
            argv = [sys.executable, "-c", FORBIDDEN, str(fake.path), str(root)]
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run(argv, capture_output=True, text=True, env=environ)
        finally:
            for path in (Path(folder), *Path(folder).rglob("*")):
                if path.is_dir():
                    path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    hit, miss = done.stdout.splitlines()
    assert hit == "True"
    assert miss.startswith("cannot write to the kernel cache")
    assert "Permission denied" in miss
    assert str(root) in miss


def test_history_is_not_worth_an_error(make: Make, fake: FakeCompiler, home: Path) -> None:
    (home / "cache root").mkdir()
    (home / "cache root" / "history").touch()
    assert make().compile("k", "int x;").loaded


def test_late_visibility_after_a_wait(
    make: Make, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Having waited for another builder, its result is looked for more than once."""
    first, second = make(), make()
    name = f"k.{first.cache_key('x')}"
    from ascendkit.jit import lock
    from ascendkit.jit.manifest import MARKER

    first.compile("k", "x")
    held = lock._try(first.disk.lock_path(name))
    real, hidden, waits = files.read_file, [6], []

    def late(path: Path) -> bytes:
        if path.name == MARKER and hidden[0]:
            hidden[0] -= 1
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path)

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            lock._release(held, first.disk.lock_path(name))

    monkeypatch.setattr(files, "read_file", late)
    monkeypatch.setattr("time.sleep", pause)
    monkeypatch.setattr(type(second.disk), "has_marker", lambda self, name: False)
    assert second.compile("k", "x").loaded
    assert fake.runs == 1
    assert hidden == [0]
