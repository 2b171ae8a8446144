"""python -m ascendkit.jit: ls, verify, prune, warm; exit codes and outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascendkit.jit import files, lock
from ascendkit.jit.manifest import MARKER

from .conftest import Make, entries, leftovers
from .fakes import GCC_BANNER, FakeCompiler


@pytest.fixture
def root(home: Path, make: Make) -> Path:
    """A root with three entries."""
    for number in range(3):
        make().compile(f"k{number}", f"int x = {number};")
    return home / "cache root"


def jit(*argv: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascendkit.jit", *argv],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environ or {})},
    )


def answer(*argv: str, code: int = 0):
    done = jit(*argv, "output=json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def entry(root: Path, tag: str) -> Path:
    return next(path for path in (root / "cache").iterdir() if path.name.startswith(tag + "."))


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * 86400,) * 2)


def test_ls(root: Path) -> None:
    rows = answer("ls", f"root={root}")
    assert [row["name"].partition(".")[0] for row in rows] == ["k0", "k1", "k2"]
    assert {row["state"] for row in rows} == {"sound"}
    assert all(row["size"] > 1000 and "12.2.0" in row["compiler"] for row in rows)
    table = jit("ls", f"root={root}").stdout
    assert "k2." in table
    assert "sound" in table


def test_roots_come_from_the_environment_too(root: Path, home: Path) -> None:
    assert len(answer("ls", f"root={root}:{home / 'none'}")) == 3
    done = jit("ls", "output=json", environ={"ASCENDKIT_JIT_CACHE_DIR": str(root)})
    assert len(json.loads(done.stdout)) == 3
    assert jit("ls", f"root={home / 'none'}").stdout.startswith("no entries in ")
    assert not (home / "none").exists()


def test_verify(root: Path) -> None:
    assert answer("verify", f"root={root}") == {"checked": 3, "findings": []}
    os.truncate(entry(root, "k0") / "kernel.so", 10)
    (entry(root, "k1") / MARKER).unlink()
    (entry(root, "k2") / "stray").touch()
    findings = answer("verify", f"root={root}", code=1)["findings"]
    assert [(row["state"], row["problem"]) for row in findings] == [
        ("damaged", f"kernel.so: 10 bytes, wanted {findings[0]['problem'].split()[-1]}"),
        ("uncommitted", "no commit marker"),
        ("damaged", "files not in the marker: stray"),
    ]
    done = jit("verify", f"root={root}")
    assert done.returncode == 1
    assert "3 entries checked, 3 findings" in done.stdout


def test_other_programs_entries_are_left_alone(root: Path) -> None:
    deepjit = root / "cache" / f"gemm.{'a' * 32}"
    deepjit.mkdir()
    (deepjit / "kernel.cu").touch()
    (deepjit / MARKER).touch()
    (root / "cache" / "notes.txt").write_text("mine")
    assert answer("verify", f"root={root}") == {"checked": 5, "findings": []}
    states = {row["name"]: row["state"] for row in answer("ls", f"root={root}")}
    assert (states[deepjit.name], states["notes.txt"]) == ("foreign", "foreign")
    removed = answer("prune", f"root={root}", "max_size=0", "older_than=0s")[0]["entries"]
    assert len(removed) == 3
    assert sorted(os.listdir(root / "cache")) == [deepjit.name, "notes.txt"]


def test_prune_unsound_and_abandoned(root: Path, make: Make) -> None:
    os.truncate(entry(root, "k0") / "kernel.so", 10)
    machine = make().disk.stage()
    with machine as alive:
        pid, boot, _, unique = alive.name.split("-")
        dead = root / "tmp" / f"{pid}-{boot}-{'0' * 8}-{unique}"
        dead.mkdir()
        (root / "lock" / "old.lock").touch()
        held = lock._try(root / "lock" / "held.lock")
        told = answer("prune", f"root={root}", "dry_run=true")[0]
        assert dead.exists()
        assert len(entries(make())) == 3
        done = answer("prune", f"root={root}")[0]
        assert {**told, "dry_run": False} == done
        assert [name.partition(".")[0] for name in done["entries"]] == ["k0"]
        assert (done["temporaries"], done["locks"]) == ([dead.name], ["old.lock"])
        assert alive.exists()
        lock._release(held, root / "lock" / "held.lock")
    assert leftovers(make()) == []
    assert answer("verify", f"root={root}")["checked"] == 2


def test_prune_by_age_and_size(root: Path) -> None:
    for tag, days in (("k0", 40), ("k1", 20), ("k2", 0)):
        age(entry(root, tag) / MARKER, days)
    for path in (root / "history").iterdir():
        age(path, 40)
    done = answer("prune", f"root={root}", "older_than=30d")[0]
    assert [name.partition(".")[0] for name in done["entries"]] == ["k0"]
    assert len(done["requests"]) == 3
    size = answer("ls", f"root={root}")[0]["size"]
    assert answer("prune", f"root={root}", "max_size=1G")[0]["entries"] == []
    done = answer("prune", f"root={root}", f"max_size={size + 10}")[0]
    assert [name.partition(".")[0] for name in done["entries"]] == ["k1"]
    assert done["bytes"] == size


def test_prune_where_nothing_may_be_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ascendkit.jit.cli import main

    os.truncate(entry(root, "k0") / "kernel.so", 10)

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "rename", fail)
    assert main(["prune", f"root={root}"]) == 1


def test_a_hit_counts_as_use(root: Path, make: Make) -> None:
    age(entry(root, "k0") / MARKER, 40)
    make().compile("k0", "int x = 0;")
    assert answer("prune", f"root={root}", "older_than=30d")[0]["entries"] == []


def test_warm_after_a_compiler_update(root: Path, fake: FakeCompiler, make: Make) -> None:
    assert answer("warm", f"root={root}") == {
        "root": str(root),
        "compiled": 0,
        "present": 3,
        "failures": [],
    }
    assert fake.runs == 3
    (fake.folder / "banner").write_text(GCC_BANNER.replace("12.2.0", "13.1.0") + "\n")
    assert answer("warm", f"root={root}", "workers=2")["compiled"] == 3
    assert fake.runs == 6
    make().compile("k1", "int x = 1;")
    assert fake.runs == 6
    assert len(entries(make())) == 6


def test_warm_an_emptied_cache(root: Path, fake: FakeCompiler, make: Make) -> None:
    answer("prune", f"root={root}", "max_size=0")
    for path in sorted((root / "history").iterdir())[:1]:
        age(path, 40)
    assert answer("warm", f"root={root}", "newer_than=30d")["compiled"] == 2
    fake.act('case "$(cat kernel.cpp)" in *0*) exit 9;; *) make;; esac')
    (root / "history" / "junk.json").write_text("{")
    report = answer("warm", f"root={root}", code=1)
    assert (report["compiled"], report["present"]) == (0, 2)
    problems = {row["request"]: row["problem"] for row in report["failures"]}
    assert "exit code 9" in problems["k0"]
    assert "not a compile request" in problems["junk.json"]
    assert jit("warm", f"root={root}").returncode == 1


def test_warm_with_nothing_remembered(home: Path) -> None:
    assert answer("warm", f"root={home / 'none'}")["compiled"] == 0
    assert not (home / "none").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lss"], "nearest: ls"),
        (["ls", "roots=/x"], "nearest: root"),
        (["ls", "/x"], "key=value"),
        (["ls", "root="], "key=value"),
        (["ls", "root=/a", "root=/b"], "one value"),
        (["ls", "root=/a::/b"], "contains an empty path"),
        (["ls", "output=xml"], "wanted one of json, table"),
        (["prune", "older_than=soon"], "30d"),
        (["prune", "older_than=-1d"], "30d"),
        (["prune", "max_size=1X"], "2G"),
        (["prune", "dry_run=maybe"], "wanted one of false, true"),
        (["warm", "workers=0"], "a positive integer"),
        (["verify", "dry_run=true"], "wanted one of output, root"),
    ],
)
def test_wrong_usage(argv: list[str], message: str) -> None:
    done = jit(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help() -> None:
    assert (jit("--help").returncode, jit().returncode) == (0, 2)
    assert "verify" in jit("--help").stdout
    assert "verify" in jit().stderr


def test_strange_things_in_a_root(root: Path) -> None:
    """Pipes, loops, files for folders: listed or ignored, never followed or waited for."""
    folder = entry(root, "k0")
    (folder / "kernel.so").unlink()
    os.mkfifo(folder / "kernel.so")
    (root / "cache" / f"loop.{'b' * 32}").symlink_to(f"loop.{'b' * 32}")
    (root / "cache" / f"file.{'c' * 32}").touch()
    rows = {row["name"].partition(".")[0]: row["state"] for row in answer("ls", f"root={root}")}
    assert rows == {
        "k0": "damaged",
        "k1": "sound",
        "k2": "sound",
        "loop": "foreign",
        "file": "foreign",
    }
    assert files.is_executable(folder / "kernel.so") is False
