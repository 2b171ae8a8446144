"""The disk cache: lifecycle, several roots, late files, and what a crash leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascendkit.jit import disk as disk_module
from ascendkit.jit import files
from ascendkit.jit.disk import DiskCache
from ascendkit.jit.manifest import MARKER

from .disk_entries import NAME, OTHER, publish, read

pytestmark = pytest.mark.usefixtures("impatient")


def test_lifecycle(home: Path) -> None:
    cache = DiskCache([home / "r"])
    assert cache.lookup(NAME) is None
    assert not (home / "r").exists(), "a miss must not create anything"
    assert publish(cache) == home / "r" / "cache" / NAME
    assert read(cache) == b"code"
    assert list((home / "r" / "tmp").iterdir()) == []


def test_abandoned_build_leaves_nothing(home: Path) -> None:
    cache = DiskCache([home / "r"])
    with pytest.raises(KeyboardInterrupt), cache.stage() as staged:
        (staged / "deep").mkdir()
        (staged / "deep" / "x").touch()
        raise KeyboardInterrupt
    assert list((home / "r" / "tmp").iterdir()) == []
    assert cache.lookup(NAME) is None


def test_first_to_publish_wins(home: Path) -> None:
    cache = DiskCache([home / "r"])
    publish(cache, data=b"first")
    publish(cache, data=b"second")
    assert read(cache) == b"first"
    assert list((home / "r" / "tmp").iterdir()) == []


def test_roots_in_order(home: Path) -> None:
    one, two = DiskCache([home / "1"]), DiskCache([home / "2"])
    both = DiskCache([home / "1", home / "2"])
    publish(two, data=b"two")
    assert read(both) == b"two"
    publish(one, data=b"one")
    assert read(both) == b"one"
    publish(both, OTHER, b"new")
    assert read(one, OTHER) == b"new"
    assert read(two, OTHER) is None


@pytest.mark.parametrize("state", ["uncommitted", "damaged"])
def test_a_bad_first_root_hides_no_good_second(home: Path, state: str) -> None:
    publish(DiskCache([home / "2"]), data=b"two")
    if state == "damaged":
        folder = publish(DiskCache([home / "1"]), data=b"one")
        (folder / "kernel.so").write_bytes(b"0ne")
    else:
        (home / "1" / "cache" / NAME).mkdir(parents=True)
    assert read(DiskCache([home / "1", home / "2"])) == b"two"


def test_a_bad_second_root_is_no_hit(home: Path) -> None:
    (home / "2" / "cache" / NAME).mkdir(parents=True)
    assert DiskCache([home / "1", home / "2"]).lookup(NAME) is None


def test_a_hit_touches_the_marker(home: Path) -> None:
    cache = DiskCache([home / "r"])
    marker = publish(cache) / MARKER
    os.utime(marker, (1, 1))
    cache.lookup(NAME)
    assert marker.stat().st_mtime > 1


def test_a_marker_that_cannot_be_touched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(DiskCache([home / "2"]), data=b"two")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "read-only")

    monkeypatch.setattr(os, "utime", refuse)
    assert read(DiskCache([home / "1", home / "2"])) == b"two"


def test_a_root_may_move(home: Path) -> None:
    publish(DiskCache([home / "r"]), data=b"code")
    (home / "r").rename(home / "moved")
    assert read(DiskCache([home / "moved"])) == b"code"


def test_late_visibility_of_a_winner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network file system another machine's files show up some time after its rename."""
    cache = DiskCache([home / "r"])
    publish(cache, data=b"winner")
    real = files.read_file
    waits = {MARKER: 2, "kernel.so": 1, "meta.json": 1}

    def late(path: Path) -> bytes:
        if waits.get(path.name, 0):
            waits[path.name] -= 1
            if path.name == "meta.json":
                return b""
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path)

    for module in ("disk.files", "manifest"):
        monkeypatch.setattr(f"ascendkit.jit.{module}.read_file", late)
    entry = cache.lookup(NAME, patient=True)
    assert entry is not None
    assert not any(waits.values())


def test_a_loser_waits_for_a_late_winner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache([home / "r"])
    publish(cache, data=b"winner")
    real = files.read_file
    misses = [1, 1, 1]

    def late(path: Path) -> bytes:
        if path.name == MARKER and misses:
            misses.pop()
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path)

    monkeypatch.setattr("ascendkit.jit.disk.files.read_file", late)
    publish(cache, data=b"loser")
    assert not misses
    assert read(cache) == b"winner"


def test_without_patience_a_miss_is_quick(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "RETRY_DELAYS_S", (60.0,))
    assert DiskCache([home / "1", home / "2"]).lookup(NAME) is None


def test_remains_of_the_dead_are_swept_at_the_first_build(home: Path) -> None:
    cache = DiskCache([home / "r"])
    (home / "r" / "tmp").mkdir(parents=True)
    with DiskCache([home / "r"]).stage() as alive:
        machine, unique = alive.name.split("-")[1], alive.name.split("-")[3]
        dead = home / "r" / "tmp" / f"{alive.name.split('-')[0]}-{machine}-{'0' * 8}-{unique}"
        dead.mkdir()
        (dead / "half.so").touch()
        (home / "r" / "tmp" / "someone else's").mkdir()
        publish(cache)
        assert sorted(path.name for path in (home / "r" / "tmp").iterdir()) == sorted(
            [alive.name, "someone else's"]
        )


def test_everything_is_flushed_before_it_shows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after the rename must find all files whole: also those the compiler wrote."""
    cache = DiskCache([home / "r"])
    flushed: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def note(fd: int) -> None:
        fsync(fd)
        flushed.add(os.fstat(fd).st_ino)

    def check(source: Path, target: Path) -> None:
        written = {path.stat().st_ino for path in (source, *source.rglob("*"))}
        assert written <= flushed
        rename(source, target)
        flushed.clear()

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "rename", check)
    with cache.stage() as staged:
        (staged / "kernel.so").write_bytes(b"by the compiler")
        (staged / "asm").mkdir()
        (staged / "asm" / "kernel.s").write_bytes(b"too")
        cache.publish(staged, NAME)
    assert flushed == {(home / "r" / "cache").stat().st_ino}, "and so is the new name"


def test_no_root() -> None:
    with pytest.raises(ValueError, match=r"at least one root"):
        DiskCache([])
